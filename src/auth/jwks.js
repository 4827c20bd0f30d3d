// Keys from JWKS endpoints. A key set is kept for an hour. An unknown key id causes a new request, at most once a
// second for each endpoint; callers within that second wait for its answer. So a new key works within a second, and
// made-up key ids cost the endpoint one request a second.
// Why no library: jose, jwks-rsa and get-jwks read answers of any length, and none bounds all requests as above. jose
// limits requests only after a successful answer, get-jwks never, and jwks-rsa refuses a good key while its limit is
// reached. None fills a URL from the token and bounds the number of such endpoints.

import { createPublicKey } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { publicKeyChecks } from './keys.js'

/** @import { SignatureCheck } from './keys.js' */

/** Longest key set, bytes. */
const MAX_BYTES = 1 << 20
/** Endpoints kept; more than one only with a template as address. */
const MAX_SETS = 256
/** Concurrent requests. */
const MAX_PENDING = 32
const TRIES = 2

/** @typedef {Map<string, SignatureCheck>} Key checks by algorithm */

/** Of one endpoint. */
class KeySet {
  /** @type {Map<string, Key[]>} key id -> keys, in the set's order */
  keys = new Map()
  /** ms, last good answer */
  fetchedAt = Number.NEGATIVE_INFINITY
  /** ms, end of the last request */
  askedAt = Number.NEGATIVE_INFINITY
  /** @type {Promise<void> | null} */
  pending = null
}

/** @param {any} jwk @returns {Key | undefined} undefined if unusable */
function readKey(jwk) {
  if (typeof jwk !== 'object' || jwk === null || typeof jwk.kid !== 'string' || jwk.use !== 'sig')
    return undefined
  if (jwk.alg !== undefined && typeof jwk.alg !== 'string') return undefined
  if (!['RSA', 'EC', 'OKP'].includes(jwk.kty)) return undefined
  try {
    const checks = publicKeyChecks(createPublicKey({ key: jwk, format: 'jwk' }), jwk.alg)
    return checks.size === 0 ? undefined : checks
  } catch {
    // One unreadable key must not invalidate the others.
    return undefined
  }
}

/** @param {Response} response @returns {Promise<string>} */
async function readBody(response) {
  const chunks = []
  let size = 0
  for await (const chunk of /** @type {AsyncIterable<Uint8Array>} */ (
    /** @type {unknown} */ (response.body ?? [])
  )) {
    size += chunk.length
    if (size > MAX_BYTES) throw new Error(`the response is longer than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/**
 * @typedef {object} JwksOptions
 * @property {() => number} [clock] ms
 * @property {typeof globalThis.fetch} [fetch]
 * @property {number} [timeout] ms for one request
 * @property {number} [ttl] ms that a key set is kept
 * @property {number} [minInterval] ms between two requests to one endpoint
 */

/** The key sets of one verifier. */
export class Jwks {
  /** @type {Map<string, KeySet>} in the order of their last answers */
  #sets = new Map()
  #pending = 0
  #options

  /** @param {JwksOptions} [options] */
  constructor({
    clock = Date.now,
    fetch = globalThis.fetch,
    timeout = 1000,
    ttl = 3_600_000,
    minInterval = 1000,
  } = {}) {
    this.#options = { clock, fetch, timeout, ttl, minInterval }
  }

  /**
   * @param {string} url @param {string} kid
   * @returns {Key[] | Promise<Key[]>} empty if the endpoint does not know the key id; rejects if it is unreachable
   */
  find(url, kid) {
    const { clock, ttl } = this.#options
    const set = this.#sets.get(url)
    const age = set === undefined ? Number.POSITIVE_INFINITY : clock() - set.fetchedAt
    const keys = set?.keys.get(kid)
    if (keys !== undefined && age < ttl) return keys
    return this.#ask(url, kid)
  }

  /** @param {string} url @param {string} kid */
  async #ask(url, kid) {
    const set = this.#sets.get(url) ?? this.#add(url)
    if (set.pending === null) {
      if (this.#pending >= MAX_PENDING) throw new Error('too many concurrent requests for JWKS')
      this.#pending++
      set.pending = this.#refresh(url, set).finally(() => {
        set.pending = null
        this.#pending--
      })
    }
    await set.pending
    return set.keys.get(kid) ?? []
  }

  /** @param {string} url */
  #add(url) {
    if (this.#sets.size >= MAX_SETS) {
      for (const [other, { pending }] of this.#sets) {
        if (pending !== null) continue
        this.#sets.delete(other)
        break
      }
    }
    const set = new KeySet()
    this.#sets.set(url, set)
    return set
  }

  /** @param {string} url @param {KeySet} set */
  async #refresh(url, set) {
    const { clock, minInterval } = this.#options
    const wait = Math.min(set.askedAt + minInterval - clock(), minInterval)
    if (wait > 0) await delay(wait)
    try {
      set.keys = await this.#fetchKeys(url)
      set.fetchedAt = clock()
      this.#sets.delete(url)
      this.#sets.set(url, set)
    } finally {
      set.askedAt = clock()
    }
  }

  /** @param {string} url */
  async #fetchKeys(url) {
    for (let tried = 1; ; tried++) {
      try {
        return await this.#fetchOnce(url)
      } catch (error) {
        if (tried < TRIES) continue
        throw new Error(`cannot get the keys from ${url}: ${error.cause?.message ?? error.message}`)
      }
    }
  }

  /** @param {string} url */
  async #fetchOnce(url) {
    const { fetch, timeout } = this.#options
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(timeout),
    })
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new Error(`HTTP status ${response.status}`)
    }
    const body = JSON.parse(await readBody(response))
    if (!Array.isArray(body?.keys)) throw new Error('the response has no list of keys')
    /** @type {Map<string, Key[]>} */
    const keys = new Map()
    for (const jwk of body.keys) {
      const key = readKey(jwk)
      if (key === undefined) continue
      const same = keys.get(jwk.kid)
      if (same === undefined) keys.set(jwk.kid, [key])
      else same.push(key)
    }
    return keys
  }
}
