import { TimerWheel } from '../../../src/base/timers.js'
import { NO_HANDLERS } from '../../../src/clients/hooks/contract.js'
import { ReplyBatch } from '../../../src/clients/session/replies.js'
import { Sessions } from '../../../src/clients/session/sessions.js'
import { Fanout } from '../../../src/clients/transport/fanout.js'
import { loadConfig } from '../../../src/config/load.js'
import { Traffic } from '../../../src/metrics/traffic.js'

/** The parts of a worker that sessions and transports need, without sockets. @param {number} [staleDelay] ms */
export function createWorker(staleDelay = 0) {
  let now = 1_700_000_000_000
  const clock = () => now
  const timers = new TimerWheel(100, clock)
  const sessions = new Sessions({ pingInterval: 0, pongTimeout: 0, staleDelay, timers, clock })
  const traffic = new Traffic([])
  return {
    timers,
    sessions,
    traffic,
    clock,
    lifecycle: null,
    rateLimits: null,
    userStatus: null,
    acks: null,
    handlers: NO_HANDLERS,
    refusals: { add() {} },
    replies: new ReplyBatch(),
    fanout: new Fanout({ publish() {} }, traffic, () => loadConfig().config),
    now: () => now / 1000,
    /** @param {number} ms */
    pass(ms) {
      now += ms
      while (timers.tick());
    },
  }
}
