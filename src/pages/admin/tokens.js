// Login tokens of the admin page: it does not store the admin key.

import { createHmac, scryptSync } from 'node:crypto'
import { createSecretCheck, sha256 } from '../../clients/auth/secret.js'

/** ms */
export const TOKEN_TTL = 24 * 3600 * 1000
const TOKEN = /^(\d{1,15})\.([\w-]{43})$/

/** Signed, not stored: accepted by all nodes with the same configuration. A new key or secret invalidates them. */
export class AdminTokens {
  #key
  #options

  /** @param {{password: string, secret: string}} options secret '': derived from the password */
  constructor({ password, secret }) {
    this.#options = { password, secret }
    /** @type {(password: string) => boolean} */
    this.matches = createSecretCheck(password)
    // Slow on purpose: prevents guessing the password from a token.
    const base = secret || scryptSync(password, 'halley admin', 32)
    this.#key = createHmac('sha256', base)
      .update(`admin tokens ${sha256(password).toString('hex')}`)
      .digest()
  }

  /** Whether it was created with these; creation is slow. @param {string} password @param {string} secret */
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

  /** @param {string} token @param {number} now unix ms @returns {number} its expiry, unix ms; 0: invalid or expired */
  check(token, now) {
    const [, expires, signature] = TOKEN.exec(token) ?? []
    if (expires === undefined) return 0
    if (!createSecretCheck(this.#sign(expires))(signature)) return 0
    return Number(expires) > now ? Number(expires) : 0
  }
}
