import { disconnects, errors } from '../../base/errors.js'
import { NO_GRANT, Plan } from './plan.js'
import { Kind } from './subscription.js'

/** @import { Namespace } from '../auth/channel-rules.js' */
/** @import { Disconnect, ReplyError } from '../../base/errors.js' */
/** @import { Identity } from '../auth/tokens.js' */
/** @import { Grant } from './plan.js' */
/** @import { Session } from './session.js' */

/** @type {Map<string, any>} */
const NO_REQUESTS = new Map()
const NO_REQUEST = Object.freeze({})
/** @type {Plan[]} */
const NO_PLANS = []

/**
 * The server-side subscriptions of a new connection: the channels of its token or its connect handler and its personal
 * channel. Unless a handler has answered, also the channels in `subs` of the request that the client could subscribe to
 * without a token.
 * @param {Session} session
 * @param {any} request connect request
 * @param {Identity} identity
 * @returns {Plan[]}
 * @throws {ReplyError | Disconnect}
 */
export function planServerSide(session, request, { user, subs: grants, answered = false }) {
  const { config, rules } = session.context
  /** @type {Map<string, any>} */
  const requested = request.subs ?? NO_REQUESTS
  const { enabled } = config.client.subscribe_to_user_personal_channel
  // The answer of a handler is complete: `subs` of the client only give positions.
  const wished = answered ? NO_REQUESTS : requested
  if (grants.size === 0 && wished.size === 0 && !(enabled && user !== '')) return NO_PLANS

  /** @type {Plan[]} */
  const plans = []
  const personal = enabled && user !== '' ? rules.personalChannel(user) : ''
  for (const [channel, grant] of grants) {
    const namespace = rules.resolve(channel)
    if (!namespace) throw errors.unknownChannel
    const granted = plan(session, channel, namespace, request, requested, grant)
    // The user has the personal channel without a token too, and a handler's channels need none.
    if (channel !== personal && !grant.hook) granted.kind |= Kind.FROM_CONNECTION_TOKEN
    plans.push(granted)
  }
  if (personal !== '') {
    const namespace = rules.resolve(personal)
    // A user id may resolve to an unknown namespace: `#tenant:42`.
    if (!namespace) throw errors.unknownChannel
    if (!grants.has(personal)) plans.push(plan(session, personal, namespace, request, requested, NO_GRANT))
  }
  for (const [channel, { delta }] of wished) {
    const namespace = rules.resolve(channel)
    if (!namespace || channel === '' || (delta && delta !== 'fossil')) throw disconnects.badRequest
    if (channel === personal || grants.has(channel)) continue
    const allowed =
      Buffer.byteLength(channel) <= config.channel.max_length &&
      rules.checkName(channel, namespace) &&
      rules.maySubscribeUnasked(channel, namespace, user)
    if (allowed) plans.push(plan(session, channel, namespace, request, requested, NO_GRANT))
  }
  if (plans.length > config.client.channel_limit) throw disconnects.channelLimit
  return plans
}

/**
 * @param {Session} session @param {string} channel @param {Namespace} namespace @param {any} request
 * @param {Map<string, any>} requested @param {Grant} grant
 */
function plan(session, channel, namespace, request, requested, grant) {
  let wanted = requested.get(channel) ?? NO_REQUEST
  // Filters are for client-side subscriptions only.
  if (wanted.tf) wanted.tf = undefined
  // An EventSource reconnects with its first URL, so the position of its last event is newer.
  const position = request.positions?.(channel)
  if (position) wanted = { ...wanted, recover: true, ...position }
  return new Plan(session, channel, namespace, wanted, grant, true)
}
