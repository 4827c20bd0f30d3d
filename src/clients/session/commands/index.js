import { disconnects, errors } from '../../../base/errors.js'
import { State } from '../state.js'
import { connect } from './connect.js'
import { message, publish, rpc } from './publish.js'
import { history, presence, presenceStats } from './read.js'
import { refresh } from './refresh.js'
import { subRefresh, subscribe, unsubscribe } from './subscribe.js'

/** @import { Disconnect } from '../../../base/errors.js' */
/** @import { Command } from '../../protocol/contract.js' */
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

/** Methods of clients. */
export const methods = Object.freeze(table.map(([method]) => method))

/** By method; `place` is the index in `methods`. */
const commands = Object.freeze(
  Object.fromEntries(table.map(([method, run], place) => [method, Object.freeze({ run, place })])),
)

/**
 * Handles one command (client protocol).
 * @param {Session} session
 * @param {Command} command
 * @throws {Disconnect} for a protocol violation, which closes the connection
 */
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
    run(session, id, request)
  } catch (error) {
    session.failInOrder(id, error, request.channel)
  }
}

const withoutChannel = new Set(['connect', 'rpc', 'send', 'refresh'])

/** Handles the connect request of a one-way client; it has no frame. @param {Session} session @param {any} request */
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
