import { setTimeout as wait } from 'node:timers/promises'
import { disconnects } from '../../base/errors.js'

/** @import { HooksModule } from '../../backends/hooks/module.js' */
/** @import { SocketServer } from '../../clients/server/contract.js' */
/** @import { Session } from '../../clients/session/session.js' */
/** @import { Sessions } from '../../clients/session/sessions.js' */
/** @import { Clients } from '../../clients/transport/index.js' */
/** @import { Drain } from '../messages.js' */

/** Time between two slices, ms. */
const SLICE_MS = 20
/** Work of one slice, ms. */
const MAX_WORK_MS = 10
/** Clients that are let go in a ms although the drain time has room for fewer: a few clients are no herd. */
const MIN_RATE = 1

/** Time for the requests of the connections accepted last, ms. A worker that another one replaces has it. */
const LAST_REQUESTS_MS = 1000
/** Time between two looks for unanswered requests, ms. */
const ANSWER_TICK_MS = 10

/** @param {Session} session */
const close = session => session.close(disconnects.shutdown)

/**
 * Lets the clients of this worker go and answers requests under way. It has stopped listening.
 * @param {{servers: SocketServer[], sessions: Sessions, polls: Clients[]}} parts `polls`: clients without a session
 *   here
 * @param {Drain} message
 * @returns {Promise<boolean>} whether there were clients
 */
export async function drainWorker({ servers, sessions, polls }, { over, within, stopping }) {
  const begun = performance.now()
  const groups = [...polls, { clients: sessions.everyOpen(), end: close }]
  const some = groups.some(({ clients }) => clients.length > 0)
  // If all workers end, another one may still tell the client of a poll that its session has ended.
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
 * Ends clients evenly over a time, so that they come back one after another.
 * @param {Clients[]} groups their clients are removed
 * @param {number} over ms
 * @returns {Promise<void>} when all are ended
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
    // Behind the plan, other work still gets its turn.
    await wait(left === 0 ? 1 : SLICE_MS)
  }
}

/**
 * Waits for handlers that learn of the last clients' ends, and for the module's `stopping`.
 * @param {HooksModule} hooks @param {() => boolean} busy @param {number} until performance.now() at the latest
 */
export async function endHooks(hooks, busy, until) {
  while (busy() && performance.now() < until) await wait(ANSWER_TICK_MS)
  const rest = Math.max(ANSWER_TICK_MS, until - performance.now())
  await Promise.race([hooks.stopping(), wait(rest)])
}
