import { setTimeout as wait } from 'node:timers/promises'
import { disconnects } from '../../base/errors.js'

/** @import { HooksModule } from '../../backends/hooks/module.js' */
/** @import { SocketServer } from '../../clients/server/contract.js' */
/** @import { Session } from '../../clients/session/session.js' */
/** @import { Sessions } from '../../clients/session/sessions.js' */
/** @import { Clients } from '../../clients/transport/index.js' */
/** @import { Drain } from '../messages.js' */

/** Time between slices, ms. */
const SLICE_MS = 20
/** Work of one slice, ms. */
const MAX_WORK_MS = 10
/** Minimum rate, clients per ms, even if the drain time is longer: reconnects of a few clients cause no load. */
const MIN_RATE = 1

/** Time for requests on the last accepted connections, ms, if this worker is replaced. */
const LAST_REQUESTS_MS = 1000
/** Interval of checks for pending requests, ms. */
const ANSWER_TICK_MS = 10

/** @param {Session} session */
const close = session => session.close(disconnects.shutdown)

/**
 * Disconnects the clients of this worker after it stops listening, and finishes requests in flight.
 * @param {{servers: SocketServer[], sessions: Sessions, polls: Clients[]}} parts `polls`: clients without a session
 *   here
 * @param {Drain} message
 * @returns {Promise<boolean>} whether there were clients
 */
export async function drainWorker({ servers, sessions, polls }, { over, within, stopping }) {
  const begun = performance.now()
  const groups = [...polls, { clients: sessions.everyOpen(), end: close }]
  const some = groups.some(({ clients }) => clients.length > 0)
  // If all workers end, another one may still notify a polling client that its session ended.
  const late = stopping ? polls.filter(({ left }) => left !== undefined) : []
  await drain(
    groups.filter(group => !late.includes(group)),
    over,
  )
  while (late.some(({ left }) => left?.()) && performance.now() < begun + over) await wait(ANSWER_TICK_MS)
  await drain(late, 0)
  const rest = begun + Math.min(within, LAST_REQUESTS_MS) - performance.now()
  if (!stopping && rest > 0) await wait(rest)
  // Requests on open connections may have opened more.
  for (const session of sessions.everyOpen()) close(session)
  while (servers.some(({ unanswered }) => unanswered > 0) && performance.now() < begun + within)
    await wait(ANSWER_TICK_MS)
  return some
}

/**
 * Disconnects clients evenly over a period, so that they reconnect gradually.
 * @param {Clients[]} groups their clients are removed
 * @param {number} over ms
 */
export async function drain(groups, over) {
  const rests = groups.map(({ clients, end }) => ({ clients: clients.reverse(), all: clients.length, end }))
  const total = rests.reduce((sum, { all }) => sum + all, 0)
  const time = Math.min(over, total / MIN_RATE)
  const begun = performance.now()
  for (;;) {
    const now = performance.now()
    const left = time > now - begun ? 1 - (now - begun) / time : 0
    let more = false
    for (const { clients, all, end } of rests) {
      const keep = Math.floor(all * left)
      while (clients.length > keep && performance.now() - now < MAX_WORK_MS) end(clients.pop())
      if (clients.length > 0) more = true
    }
    if (!more) return
    // When late, still yield to other work.
    await wait(left === 0 ? 1 : SLICE_MS)
  }
}

/**
 * Waits for handlers of `disconnected`, and for `stopping` of the module.
 * @param {HooksModule} hooks @param {() => boolean} busy @param {number} until deadline, performance.now()
 */
export async function endHooks(hooks, busy, until) {
  while (busy() && performance.now() < until) await wait(ANSWER_TICK_MS)
  const rest = Math.max(ANSWER_TICK_MS, until - performance.now())
  await Promise.race([hooks.stopping(), wait(rest)])
}
