// Login tokens of the admin page, which therefore does not keep the admin key.

import { createHash, createHmac, scryptSync, timingSafeEqual } from 'node:crypto'

/** ms */
export const TOKEN_TTL = 24 * 3600 * 1000
const TOKEN = /^(\d{1,15})\.([\w-]{43})$/

/** @param {string} text */
const digest = text => createHash('sha256').update(text).digest()

/**
 * Tokens contain their expiry and are signed, not stored: every worker of every node with the same configuration
 * accepts them. A new key or secret invalidates all.
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

  /** Compares in constant time. @param {string} password @returns {boolean} */
  matches(password) {
    return timingSafeEqual(digest(password), this.#password)
  }

  /** @param {string} expires */
  #sign(expires) {
    return createHmac('sha256', this.#key).update(expires).digest()
  }

  /** @param {number} now unix ms @returns {{token: string, expires: number}} unix ms */
  issue(now) {
    const expires = now + TOKEN_TTL
    return { token: `${expires}.${this.#sign(String(expires)).toString('base64url')}`, expires }
  }

  /**
   * @param {string} token
   * @param {number} now unix ms
   * @returns {number} its expiry, unix ms; 0 if it is invalid or expired
   */
  check(token, now) {
    const [, expires, signature] = TOKEN.exec(token) ?? []
    if (expires === undefined) return 0
    if (!timingSafeEqual(Buffer.from(signature, 'base64url'), this.#sign(expires))) return 0
    return Number(expires) > now ? Number(expires) : 0
  }
}
