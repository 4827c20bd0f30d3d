// Ends the access of connected clients that the denylist refuses.

import { disconnects, errors, unsubscribes } from '../../base/errors.js'
import { list } from './subscription.js'

/** @import { Disconnect, ReplyError } from '../../base/errors.js' */
/** @import { Denial } from '../../channels/broker/denials/contract.js' */
/** @import { WorkerContext } from './context.js' */
/** @import { Plan } from './plan.js' */
/** @import { Session } from './session.js' */

/** More blocked users than this are looked for among all sessions. */
const MAX_LOOKUPS = 100

/**
 * For a connecting client, whose user and token are known.
 * @param {Session} session @returns {ReplyError | Disconnect | null}
 */
export function denialOf({ context, user, stamp }) {
  const { denylist } = context
  if (denylist.size === 0) return null
  if (denylist.blocks(user)) return disconnects.permissionDenied
  return stamp !== null && denylist.rejects(stamp, user, '') ? errors.tokenRevoked : null
}

/**
 * @param {Session} session @param {Plan} plan of a subscription that is about to begin
 * @returns {boolean} whether its token was revoked meanwhile
 */
export const isRevoked = ({ context: { denylist }, user }, { grant, channel }) =>
  denylist.size > 0 && grant.stamp !== undefined && denylist.rejects(grant.stamp, user, channel)

/**
 * Closes the connection, or ends its subscriptions, if the denylist refuses them.
 * @param {Session} session connected
 */
function enforce(session) {
  const denial = denialOf(session)
  if (denial === disconnects.permissionDenied) return session.close(denial)
  // SDKs reconnect and ask for new tokens; one-way clients would use theirs again.
  if (denial !== null)
    return session.close(
      session.codec.unidirectional ? disconnects.invalidToken : disconnects.stateInvalidated,
    )
  const { denylist } = session.context
  for (const subscription of list(session.subscriptions)) {
    const { channel, details } = subscription
    if (details.stamp !== null && denylist.rejects(details.stamp, session.user, channel.name))
      session.unsubscribe(subscription, unsubscribes.stateInvalidated)
  }
  for (const { channel, grant } of [...(session.extra?.catchUps?.values() ?? [])])
    if (grant.stamp && denylist.rejects(grant.stamp, session.user, channel))
      session.refuseCatchUp(channel, unsubscribes.stateInvalidated)
}

/** Applies additions to the denylist to the clients of a worker. Sessions are visited in slices. */
export class Enforcement {
  #context
  #scanning = false
  #again = false

  /** @param {WorkerContext} context */
  constructor(context) {
    this.#context = context
  }

  /** @param {Denial[]} denials already in the denylist */
  denied(denials) {
    const ofUsers = denials.every(({ kind }) => kind !== 'token_revoke')
    if (!ofUsers || denials.length > MAX_LOOKUPS) return this.#scan()
    const users = new Set(denials.map(({ key }) => key))
    for (const user of users) this.#visit(this.#context.sessions.of(user, {}))
  }

  /** Tokens are not indexed: one scan for all changes since the last one began. */
  #scan() {
    if (this.#scanning) {
      this.#again = true
      return
    }
    this.#scanning = true
    /** @type {Session[]} */
    const all = []
    this.#context.sessions.forEach(session => void all.push(session))
    this.#visit(all)
    this.#context.sessions.afterVisits(() => {
      this.#scanning = false
      if (!this.#again) return
      this.#again = false
      this.#scan()
    })
  }

  /** @param {Session[]} sessions */
  #visit(sessions) {
    const { log } = this.#context
    this.#context.sessions.visitInSlices(sessions, session => {
      if (session.closed) return
      try {
        enforce(session)
      } catch (err) {
        log.error({ err, client: session.id }, 'ending the access of a client failed')
      }
    })
  }
}
