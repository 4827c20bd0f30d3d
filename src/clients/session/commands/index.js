import { disconnects, errors } from '../../../base/errors.js'
import { IN_REDIS } from '../rate-limits.js'
import { State } from '../state.js'
import { continues } from '../subscription.js'
import { connect } from './connect.js'
import { message, publish, rpc } from './publish.js'
import { history, presence, presenceStats } from './read.js'
import { refresh } from './refresh.js'
import { subRefresh, subscribe, unsubscribe } from './subscribe.js'

/** @import { Command } from '../../protocol/contract.js' */
/** @import { RateLimits } from '../rate-limits.js' */
/** @import { Session } from '../session.js' */

/** @type {[method: string, run: (session: Session, id: number, request: any) => void][]} */
const table = [
  ['connect', connect],
  ['subscribe', subscribe],
  ['unsubscribe', unsubscribe],
  ['publish', publish],
  ['presence', presence],
  ['presence_stats', presenceStats],
  ['history', history],
  ['rpc', rpc],
  ['send', message],
  ['refresh', refresh],
  ['sub_refresh', subRefresh],
]

export const methods = Object.freeze(table.map(([method]) => method))

/** By method; `place` is the index in `methods`. */
const commands = Object.freeze(
  Object.fromEntries(table.map(([method, run], place) => [method, Object.freeze({ run, place })])),
)

/** @param {Session} session @param {Command} command */
export function dispatch(session, { id, method, request, ping }) {
  const connecting = method === 'connect'
  if (connecting !== (session.state === State.OPEN)) throw disconnects.badRequest
  if (method === '') return session.pong()
  if (id === 0 && method !== 'send') throw disconnects.badRequest
  const { run, place } = commands[method]
  session.context.traffic.commands[place]++
  try {
    if (ping) throw errors.notAvailable
    if (request.channel === undefined || request.channel === '') {
      if (!withoutChannel.has(method)) throw disconnects.badRequest
    }
    const { rateLimits } = session.context
    if (rateLimits === null || connecting) run(session, id, request)
    else runLimited(session, id, method, request, rateLimits)
  } catch (error) {
    session.failInOrder(id, error, request.channel)
  }
}

/**
 * @param {Session} session @param {number} id @param {string} method @param {any} request
 * @param {RateLimits} rateLimits
 */
function runLimited(session, id, method, request, rateLimits) {
  const refusal = rateLimits.check(session, method, request)
  if (refusal !== IN_REDIS) return runUnlessRefused(session, id, method, request, refusal)
  // An unsubscribe must not overtake its subscribe.
  session.holdAll()
  rateLimits.checkInRedis(session, method, request, error =>
    session.resumeAll(id, () => {
      try {
        runUnlessRefused(session, id, method, request, error)
      } catch (thrown) {
        session.failInOrder(id, thrown, request.channel)
      }
    }),
  )
}

/**
 * @param {Session} session @param {number} id @param {string} method @param {any} request
 * @param {Error | null} refusal
 */
function runUnlessRefused(session, id, method, request, refusal) {
  if (refusal === null) return commands[method].run(session, id, request)
  // A client without the next page of a map begins again.
  if (method === 'subscribe' && continues(request)) session.extra?.catchUps?.end(request.channel)
  throw refusal
}

const withoutChannel = new Set(['connect', 'rpc', 'send', 'refresh'])

/** @param {Session} session @param {any} request of a one-way client, without a frame */
export function connectUnidirectional(session, request) {
  const { replies } = session.context
  replies.open(session)
  try {
    dispatch(session, { id: 1, method: 'connect', request, ping: false })
  } catch (error) {
    session.fail(0, error)
  }
  replies.flush()
}
