// Who may not connect: blocked users, revoked tokens, and users whose older tokens are invalid. The primary has the list
// of the node, each worker a copy.

/** @import { Denial, Entry, Kind, TokenStamp } from './denials/contract.js' */

export const KINDS = /** @type {const} */ (['user_block', 'token_revoke', 'user_tokens_invalidate'])

/** How long a copy remembers a removal, which may overtake an older change, s. */
const REMOVED_S = 60

/** @param {Denial} denial @returns {string} unambiguous for any user and channel */
export const keyOf = ({ kind, key, channel }) =>
  kind === 'user_tokens_invalidate' ? tokensKey(key, channel) : key

/** @param {string} user @param {string} channel '' = all */
const tokensKey = (user, channel) => `${channel.length}:${channel}${user}`

/** @param {number} one @param {number} other unix s, 0 = never @returns {number} the later one */
const laterOf = (one, other) => (one === 0 || other === 0 ? 0 : Math.max(one, other))

export class Denylist {
  /** Entries of all kinds: 0 = nothing to check. */
  size = 0
  /** @type {Record<Kind, Map<string, Entry>>} */
  #entries = { user_block: new Map(), token_revoke: new Map(), user_tokens_invalidate: new Map() }
  /** The earliest expiry of an entry, unix s. */
  #nextExpiry = Infinity
  #now

  /** @param {() => number} [clock] ms */
  constructor(clock = Date.now) {
    this.#now = () => clock() / 1000
  }

  /** @param {Kind} kind @returns {number} entries, including expired ones until the next sweep */
  count(kind) {
    return this.#entries[kind].size
  }

  /** @param {Denial} denial @returns {boolean} whether there is an entry for its key */
  has(denial) {
    return this.#entries[denial.kind].has(keyOf(denial))
  }

  /**
   * Applies a change, unless a newer one of the same key is known.
   * @param {Denial} denial
   * @returns {boolean} whether it may deny something
   */
  apply(denial) {
    const { kind, seq, removed } = denial
    let { expireAt, issuedBefore } = denial
    const key = keyOf(denial)
    const entries = this.#entries[kind]
    const former = entries.get(key)
    if (former !== undefined && former.seq >= seq) return false
    // A later call never makes older tokens valid again.
    if (kind === 'user_tokens_invalidate' && former !== undefined && this.#inForce(former)) {
      expireAt = laterOf(expireAt, former.expireAt)
      issuedBefore = Math.max(issuedBefore, former.issuedBefore)
    }
    if (removed) expireAt = Math.floor(this.#now()) + REMOVED_S
    entries.set(key, { seq, expireAt, issuedBefore, removed })
    if (former === undefined) this.size++
    if (expireAt > 0) this.#nextExpiry = Math.min(this.#nextExpiry, expireAt)
    return !removed
  }

  /** Forgets an entry at once: the owner of the list needs no removed ones. @param {Denial} denial */
  forget(denial) {
    if (this.#entries[denial.kind].delete(keyOf(denial))) this.size--
  }

  /** @param {Kind} kind @param {string} key @returns {Entry | null} in force */
  #find(kind, key) {
    const entry = this.#entries[kind].get(key)
    return entry !== undefined && this.#inForce(entry) ? entry : null
  }

  /** @param {Entry} entry */
  #inForce({ removed, expireAt }) {
    return !removed && (expireAt === 0 || expireAt > this.#now())
  }

  /** @param {string} user @returns {boolean} */
  blocks(user) {
    return this.#find('user_block', user) !== null
  }

  /**
   * @param {TokenStamp} stamp of the token @param {string} user of the token
   * @param {string} channel of a subscription token, '' = connection token
   * @returns {boolean} whether the token is revoked or invalid
   */
  rejects({ uid, issuedAt }, user, channel) {
    if (uid !== '' && this.#find('token_revoke', uid) !== null) return true
    if (this.#entries.user_tokens_invalidate.size === 0 || user === '') return false
    return this.#predates(issuedAt, user, '') || (channel !== '' && this.#predates(issuedAt, user, channel))
  }

  /** @param {number} issuedAt @param {string} user @param {string} channel */
  #predates(issuedAt, user, channel) {
    const entry = this.#find('user_tokens_invalidate', tokensKey(user, channel))
    // Without `iat` the time is unknown.
    return entry !== null && (issuedAt === 0 || issuedAt < entry.issuedBefore)
  }

  /** Removes expired entries, if there are any. */
  sweep() {
    const now = this.#now()
    if (now < this.#nextExpiry) return
    this.#nextExpiry = Infinity
    for (const kind of KINDS) {
      for (const [key, { expireAt }] of this.#entries[kind]) {
        if (expireAt === 0) continue
        if (expireAt > now) this.#nextExpiry = Math.min(this.#nextExpiry, expireAt)
        else if (this.#entries[kind].delete(key)) this.size--
      }
    }
  }

  /** @returns {Generator<Denial>} entries, also those added meanwhile; for a copy */
  *all() {
    for (const kind of KINDS) {
      for (const [text, { seq, expireAt, issuedBefore, removed }] of this.#entries[kind]) {
        const [key, channel] = parseKey(kind, text)
        yield { kind, key, channel, seq, expireAt, issuedBefore, removed }
      }
    }
  }
}

/** @param {Kind} kind @param {string} text of keyOf @returns {[key: string, channel: string]} */
export function parseKey(kind, text) {
  if (kind !== 'user_tokens_invalidate') return [text, '']
  const colon = text.indexOf(':')
  const end = colon + 1 + Number(text.slice(0, colon))
  return [text.slice(end), text.slice(colon + 1, end)]
}
