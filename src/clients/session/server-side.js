import { disconnects, errors } from '../../base/errors.js'
import { CatchUp } from './catch-up.js'
import { isOfType } from './commands/catch-up.js'
import { grantBy, Plan } from './plan.js'
import { CAPABILITY_GRANT, checkServerFilter, maySubscribeByCapability } from './rights.js'
import { Kind, Source } from './subscription.js'

/** @import { Namespace } from '../auth/channel-rules.js' */
/** @import { Identity } from '../auth/tokens.js' */
/** @import { Grant } from './plan.js' */
/** @import { Session } from './session.js' */

/** @type {Map<string, any>} */
const NO_REQUESTS = new Map()
const NO_REQUEST = Object.freeze({})
/** @type {Plan[]} */
const NO_PLANS = []

/**
 * Server-side subscriptions of a new connection: channels of the token or connect handler, the personal channel and,
 * without a handler result, requested `subs` that need no token. One-way clients may also request what their
 * capabilities grant.
 * @param {Session} session @param {any} request connect request @param {Identity} identity
 */
export function planServerSide(session, request, { user, subs: grants, answered = false }) {
  const { config, rules } = session.context
  /** @type {Map<string, any>} */
  const requested = request.subs ?? NO_REQUESTS
  const { enabled } = config.client.subscribe_to_user_personal_channel
  const usesCaps = session.codec.unidirectional && Boolean(session.extra?.caps)
  // With a handler result, the client's `subs` are only positions.
  const wished = answered && !usesCaps ? NO_REQUESTS : requested
  if (grants.size === 0 && wished.size === 0 && !(enabled && user !== '')) return NO_PLANS

  /** @type {Plan[]} */
  const plans = []
  const personal = enabled && user !== '' ? rules.personalChannel(user) : ''
  for (const [channel, grant] of grants) {
    const namespace = rules.resolve(channel)
    if (!namespace) throw errors.unknownChannel
    const sourced = grant.source === undefined ? { ...grant, source: Source.CONNECTION_TOKEN } : grant
    const granted = plan(session, channel, namespace, request, requested, sourced)
    // Personal channels and a handler's channels need no token.
    if (channel !== personal && !grant.hook) granted.kind |= Kind.FROM_CONNECTION_TOKEN
    plans.push(granted)
  }
  if (personal !== '') {
    const namespace = rules.resolve(personal)
    // A user id may resolve to an unknown namespace: `#tenant:42`.
    if (!namespace) throw errors.unknownChannel
    const grant = grantBy(Source.PERSONAL)
    if (!grants.has(personal)) plans.push(plan(session, personal, namespace, request, requested, grant))
  }
  for (const [channel, wish] of wished) {
    const { delta } = wish
    const namespace = rules.resolve(channel)
    if (!namespace || channel === '' || (delta && delta !== 'fossil')) throw disconnects.badRequest
    if (channel === personal || grants.has(channel)) continue
    const valid =
      isOfType(wish, namespace) &&
      !namespace.options.require_server_tags_filter &&
      Buffer.byteLength(channel) <= config.channel.max_length &&
      rules.checkName(channel, namespace)
    if (!valid) continue
    if (!answered && rules.maySubscribeUnasked(channel, namespace, user))
      plans.push(plan(session, channel, namespace, request, requested, grantBy(Source.ONE_WAY_CONNECT)))
    else if (usesCaps && maySubscribeByCapability(session, channel))
      plans.push(plan(session, channel, namespace, request, requested, CAPABILITY_GRANT))
  }
  if (plans.length > config.client.channel_limit) throw disconnects.channelLimit
  return plans
}

/**
 * @param {Session} session @param {string} channel @param {Namespace} namespace @param {any} request
 * @param {Map<string, any>} requested @param {Grant} grant
 */
function plan(session, channel, namespace, request, requested, grant) {
  checkServerFilter(namespace, grant.filter)
  if (namespace.kind !== 'stream') return planMap(session, channel, namespace, grant)
  let wanted = requested.get(channel) ?? NO_REQUEST
  // Filters are only for client-side subscriptions.
  if (wanted.tf) wanted.tf = undefined
  // An EventSource reconnects with its first URL: the position of its last event is newer.
  const position = request.positions?.(channel)
  if (position) wanted = { ...wanted, recover: true, ...position }
  return new Plan(session, channel, namespace, wanted, grant, true)
}

/**
 * Only one-way clients have server-side maps: the others read the state in pages. A reconnect gets the state again.
 * @param {Session} session @param {string} channel @param {Namespace} namespace @param {Grant} grant
 */
function planMap(session, channel, namespace, grant) {
  if (!session.codec.unidirectional || namespace.mapRules === null) throw errors.badRequest
  return new CatchUp(session, channel, namespace, NO_REQUEST, grant, true)
}
