// Keys from JWKS endpoints. A key set is kept for an hour, and longer while its endpoint is unreachable. An unknown key
// id causes a request, at most one per second and endpoint; ids missing from the response are cached for ten seconds.
// jose, jwks-rsa and get-jwks read responses of any length. jose limits requests only after a successful response,
// get-jwks never; jwks-rsa rejects valid keys while its limit is reached. None fills URLs from tokens.

import { createPublicKey } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { publicKeyChecks } from './keys.js'
import { sha256 } from './secret.js'

/** @import { SignatureCheck } from './keys.js' */

const MAX_BYTES = 1 << 20
/** Maximum endpoints; more than one requires a URL template. */
const MAX_SETS = 256
const MAX_PENDING = 32
const TRIES = 2
/** Maximum keys per set: parsing a key takes 0.1 ms. */
const MAX_KEYS = 256
/** Maximum unknown key ids per set, and characters of each. */
const MAX_UNKNOWN = 256
const MAX_KID_LENGTH = 128
/** Delay before requesting an unknown key id again. */
const UNKNOWN_TTL_MS = 10_000
/** Request interval while old keys are used. */
const RETRY_MS = 10_000
const REPORT_MS = 60_000

/** @typedef {Map<string, SignatureCheck>} Key checks by algorithm */

class KeySet {
  /** By key id. @type {Map<string, Key[]>} */
  keys = new Map()
  /** Ids missing from the last successful response. @type {Set<string>} */
  unknown = new Set()
  /** SHA-256 of the keys. @type {Buffer | null} */
  digest = null
  /** Time of the last success, ms. */
  fetchedAt = Number.NEGATIVE_INFINITY
  failed = false
  /** End of the last request, ms. */
  requestedAt = Number.NEGATIVE_INFINITY
  /** @type {Promise<void> | null} */
  pending = null
}

/** @type {Key[]} */
const NO_KEYS = []

const tooMany = () => new Error('too many concurrent JWKS requests')

/** @param {any} jwk @returns undefined if unusable */
function readKey(jwk) {
  if (typeof jwk?.kid !== 'string' || jwk.use !== 'sig' || !['RSA', 'EC', 'OKP'].includes(jwk.kty))
    return undefined
  if (typeof (jwk.alg ?? '') !== 'string') return undefined
  try {
    const checks = publicKeyChecks(createPublicKey({ key: jwk, format: 'jwk' }), jwk.alg)
    return checks.size === 0 ? undefined : checks
  } catch {
    return undefined
  }
}

/** @param {any[]} list JWKs */
function readKeys(list) {
  /** @type {Map<string, Key[]>} */
  const keys = new Map()
  for (const jwk of list) {
    const key = readKey(jwk)
    if (key !== undefined) keys.set(jwk.kid, [...(keys.get(jwk.kid) ?? []), key])
  }
  return keys
}

/** @param {Response} response */
async function readBody(response) {
  const chunks = []
  let size = 0
  for await (const chunk of /** @type {any} */ (response.body ?? [])) {
    size += chunk.length
    if (size > MAX_BYTES) throw new Error(`the response is longer than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/**
 * @typedef {{url: string, keys: string}} KnownKeys `keys`: list of JWKs as JSON
 *
 * @typedef {object} JwksOptions
 * @property {() => number} [clock] ms
 * @property {typeof globalThis.fetch} [fetch]
 * @property {number} [timeout] ms of a request
 * @property {number} [ttl] ms of a key set
 * @property {number} [minInterval] ms between requests to one endpoint
 * @property {(error: Error, kept: number) => void} [onUnreachable] at most once a minute; `kept`: keys still in use
 * @property {(url: string, keys: string) => void} [onKeys] changed keys
 * @property {readonly KnownKeys[]} [known] used while their endpoint is unreachable
 */

/** Key sets of a worker by URL, kept across reloads. */
export class Jwks {
  /** In the order of their last responses. @type {Map<string, KeySet>} */
  #sets = new Map()
  #pending = 0
  #options
  #onUnreachable
  #onKeys
  #reportedAt = Number.NEGATIVE_INFINITY

  /** @param {JwksOptions} [options] */
  constructor({
    clock = Date.now,
    fetch = globalThis.fetch,
    timeout = 1000,
    ttl = 3_600_000,
    minInterval = 1000,
    onUnreachable,
    onKeys,
    known = [],
  } = {}) {
    this.#options = { clock, fetch, timeout, ttl, minInterval }
    this.#onUnreachable = onUnreachable
    this.#onKeys = onKeys
    for (const { url, keys } of known) this.#add(url).keys = readKeys(JSON.parse(keys))
  }

  /**
   * @param {string} url @param {string} kid
   * @returns {Key[] | Promise<Key[]>} empty: unknown; rejects if the endpoint is unreachable and the key not cached
   */
  find(url, kid) {
    const set = this.#sets.get(url)
    if (set === undefined) {
      if (this.#pending >= MAX_PENDING) return Promise.reject(tooMany())
      return this.#fetched(url, this.#add(url), kid)
    }
    const { clock, ttl } = this.#options
    const now = clock()
    const age = now - set.fetchedAt
    const keys = set.keys.get(kid)
    if (keys === undefined) {
      if (age < UNKNOWN_TTL_MS && set.unknown.has(kid)) return NO_KEYS
    } else {
      if (age < ttl) return keys
      if (set.failed) {
        if (now - set.requestedAt >= RETRY_MS) this.#request(url, set).catch(() => {})
        return keys
      }
    }
    return this.#fetched(url, set, kid)
  }

  /** @param {string} url @param {KeySet} set @param {string} kid @returns {Promise<Key[]>} */
  async #fetched(url, set, kid) {
    try {
      await this.#request(url, set)
    } catch (error) {
      const kept = set.keys.get(kid)
      if (kept !== undefined) return kept
      throw error
    }
    const keys = set.keys.get(kid)
    if (keys !== undefined) return keys
    if (set.unknown.size < MAX_UNKNOWN && kid.length <= MAX_KID_LENGTH) set.unknown.add(kid)
    return NO_KEYS
  }

  /** @param {string} url @param {KeySet} set */
  #request(url, set) {
    if (set.pending !== null) return set.pending
    if (this.#pending >= MAX_PENDING) return Promise.reject(tooMany())
    this.#pending++
    set.pending = this.#refresh(url, set).finally(() => {
      set.pending = null
      this.#pending--
    })
    return set.pending
  }

  /** @param {string} url */
  #add(url) {
    if (this.#sets.size >= MAX_SETS) {
      const idle = [...this.#sets].filter(([, { pending }]) => pending === null)
      // Invented endpoints must not evict real ones.
      const [oldest] = idle.find(([, { keys }]) => keys.size === 0) ?? idle[0]
      this.#sets.delete(oldest)
    }
    const set = new KeySet()
    this.#sets.set(url, set)
    return set
  }

  /** @param {string} url @param {KeySet} set */
  async #refresh(url, set) {
    const { clock, minInterval } = this.#options
    const wait = Math.min(set.requestedAt + minInterval - clock(), minInterval)
    if (wait > 0) await delay(wait)
    try {
      const list = await this.#fetchKeys(url)
      set.keys = readKeys(list)
      set.failed = false
      const keys = JSON.stringify(list)
      const digest = sha256(keys)
      if (!set.digest?.equals(digest)) this.#onKeys?.(url, keys)
      set.digest = digest
      if (clock() - set.fetchedAt >= UNKNOWN_TTL_MS) set.unknown.clear()
      set.fetchedAt = clock()
      this.#sets.delete(url)
      this.#sets.set(url, set)
    } catch (error) {
      set.failed = true
      const now = clock()
      if (now - this.#reportedAt >= REPORT_MS) {
        this.#reportedAt = now
        this.#onUnreachable?.(error, set.keys.size)
      }
      throw error
    } finally {
      set.requestedAt = clock()
    }
  }

  /** @param {string} url @returns {Promise<any[]>} */
  async #fetchKeys(url) {
    for (let tried = 1; ; tried++) {
      try {
        return await this.#fetchOnce(url)
      } catch (error) {
        if (tried < TRIES) continue
        throw new Error(`cannot fetch the keys from ${url}: ${error.cause?.message ?? error.message}`)
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
    if (!Array.isArray(body?.keys)) throw new Error('the response has no `keys` array')
    if (body.keys.length > MAX_KEYS) throw new Error(`the response has more than ${MAX_KEYS} keys`)
    return body.keys
  }
}
