// Who may call the server API (server API, section 1).

import { timingSafeEqual } from 'node:crypto'

/** Compares API keys in constant time, but for their length. */
class KeyCheck {
  #key
  #expected
  #given

  /** @param {string} key */
  constructor(key) {
    this.#key = key
    this.#expected = Buffer.from(key)
    this.#given = Buffer.alloc(this.#expected.length)
  }

  /** @param {string} given */
  matches(given) {
    if (given.length !== this.#key.length) return false
    this.#given.write(given)
    return timingSafeEqual(this.#given, this.#expected)
  }
}

/**
 * @param {{key: string, insecure: boolean}} options
 * @returns {(exchange: import('../server/contract.js').Exchange) => boolean}
 */
export function createAccess({ key, insecure }) {
  if (insecure) return () => true
  if (key === '') return () => false
  const check = new KeyCheck(key)
  return exchange => {
    const own = exchange.header('x-api-key')
    if (own !== '') {
      if (check.matches(own)) return true
    } else {
      const [, word] = /^apikey +(.*)$/i.exec(exchange.header('authorization')) ?? []
      if (word !== undefined && check.matches(word)) return true
    }
    if (exchange.query === '') return false
    const asked = new URLSearchParams(exchange.query).get('api_key')
    return asked !== null && check.matches(asked)
  }
}
