// Login tokens of the admin page, which therefore does not keep the admin key.

import { createHmac, scryptSync } from 'node:crypto'
import { createSecretCheck, sha256 } from '../../clients/auth/secret.js'

/** ms */
export const TOKEN_TTL = 24 * 3600 * 1000
const TOKEN = /^(\d{1,15})\.([\w-]{43})$/

/**
 * Tokens contain their expiry and are signed, not stored: every worker of every node with the same configuration
 * accepts them. A new key or secret invalidates all.
 */
export class AdminTokens {
  #key
  #options

  /** @param {{password: string, secret: string}} options secret '': made from the password */
  constructor({ password, secret }) {
    this.#options = { password, secret }
    /** @type {(password: string) => boolean} whether it is the right one */
    this.matches = createSecretCheck(password)
    // Slow on purpose: passwords must not be guessed from a token.
    const base = secret || scryptSync(password, 'halley admin', 32)
    this.#key = createHmac('sha256', base)
      .update(`admin tokens ${sha256(password).toString('hex')}`)
      .digest()
  }

  /** Whether it was made of these: making it is slow. @param {string} password @param {string} secret */
  isFor(password, secret) {
    return this.#options.password === password && this.#options.secret === secret
  }

  /** @param {string} expires @returns {string} base64url */
  #sign(expires) {
    return createHmac('sha256', this.#key).update(expires).digest('base64url')
  }

  /** @param {number} now unix ms @returns {{token: string, expires: number}} unix ms */
  issue(now) {
    const expires = now + TOKEN_TTL
    return { token: `${expires}.${this.#sign(String(expires))}`, expires }
  }

  /**
   * @param {string} token
   * @param {number} now unix ms
   * @returns {number} its expiry, unix ms; 0 if it is invalid or expired
   */
  check(token, now) {
    const [, expires, signature] = TOKEN.exec(token) ?? []
    if (expires === undefined) return 0
    if (!createSecretCheck(this.#sign(expires))(signature)) return 0
    return Number(expires) > now ? Number(expires) : 0
  }
}
