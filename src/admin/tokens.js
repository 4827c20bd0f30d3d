// Login tokens of the admin page, so that the page need not keep the admin key.

import { createHash, createHmac, scryptSync, timingSafeEqual } from 'node:crypto'

/** How long a token is good for, ms. */
export const TOKEN_LIFE = 24 * 3600 * 1000
const TOKEN = /^(\d{1,15})\.([\w-]{43})$/

/** @param {string} text */
const digest = text => createHash('sha256').update(text).digest()

/**
 * Tokens hold their expiry and are signed: every worker of every node with the same configuration accepts them, and
 * none is stored. Another key or another secret ends them all.
 */
export class AdminTokens {
  #password
  #key

  /** @param {{password: string, secret: string}} options secret '': made from the password */
  constructor({ password, secret }) {
    this.#password = digest(password)
    // Slow on purpose: passwords must not be guessed from a token.
    const base = secret || scryptSync(password, 'halley admin', 32)
    this.#key = createHmac('sha256', base)
      .update(`admin tokens ${this.#password.toString('hex')}`)
      .digest()
  }

  /** @param {string} password @returns {boolean} compared in constant time */
  matches(password) {
    return timingSafeEqual(digest(password), this.#password)
  }

  /** @param {string} expires */
  #sign(expires) {
    return createHmac('sha256', this.#key).update(expires).digest()
  }

  /** @param {number} now unix ms @returns {{token: string, expires: number}} unix ms */
  issue(now) {
    const expires = now + TOKEN_LIFE
    return { token: `${expires}.${this.#sign(String(expires)).toString('base64url')}`, expires }
  }

  /**
   * @param {string} token
   * @param {number} now unix ms
   * @returns {number} when it expires, unix ms; 0 if it is no token of ours or has expired
   */
  check(token, now) {
    const [, expires, signature] = TOKEN.exec(token) ?? []
    if (expires === undefined) return 0
    if (!timingSafeEqual(Buffer.from(signature, 'base64url'), this.#sign(expires))) return 0
    return Number(expires) > now ? Number(expires) : 0
  }
}
