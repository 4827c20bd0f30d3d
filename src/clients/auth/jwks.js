// Keys from JWKS endpoints. A key set is kept for an hour, and longer while its endpoint cannot be reached: keys that
// it has published are good until it says otherwise. An unknown key id causes a new request, at most once a second for
// each endpoint; callers within that second wait for its answer. So a new key works within a second, and made-up key
// ids cost the endpoint one request a second. An id that an answer did not have is unknown for ten seconds without a
// request.
// Why no library: jose, jwks-rsa and get-jwks read answers of any length, and none bounds all requests as above. jose
// limits requests only after a successful answer, get-jwks never, and jwks-rsa refuses a good key while its limit is
// reached. None fills a URL from the token and bounds the number of such endpoints.

import { createPublicKey } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { publicKeyChecks } from './keys.js'
import { sha256 } from './secret.js'

/** @import { SignatureCheck } from './keys.js' */

/** Longest key set, bytes. */
const MAX_BYTES = 1 << 20
/** Endpoints kept; more than one only with a template as address. */
const MAX_SETS = 256
/** Concurrent requests. */
const MAX_PENDING = 32
const TRIES = 2
/** Keys of one set: reading one takes a tenth of a millisecond. */
const MAX_KEYS = 256
/** Unknown key ids remembered for each set, and the longest one, characters. */
const MAX_UNKNOWN = 256
const MAX_KID_LENGTH = 128
/** Time that they are unknown without another request, ms. */
const UNKNOWN_TTL_MS = 10_000
/** Time between two requests while old keys are used, ms. */
const RETRY_MS = 10_000
/** Time between two reports of an unreachable endpoint, ms. */
const REPORT_MS = 60_000

/** @typedef {Map<string, SignatureCheck>} Key checks by algorithm */

/** Of one endpoint. */
class KeySet {
  /** @type {Map<string, Key[]>} key id -> keys, in the set's order */
  keys = new Map()
  /** @type {Set<string>} key ids that the last good answer did not have */
  unknown = new Set()
  /** SHA-256 of the last good answer's keys. @type {Buffer | null} */
  digest = null
  /** ms, last good answer */
  fetchedAt = Number.NEGATIVE_INFINITY
  /** Whether the last request failed. */
  failed = false
  /** ms, end of the last request */
  askedAt = Number.NEGATIVE_INFINITY
  /** @type {Promise<void> | null} */
  pending = null
}

/** @type {Key[]} */
const NO_KEYS = []

const tooMany = () => new Error('too many concurrent requests for JWKS')

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

/** @param {any[]} list of JWKs @returns {Map<string, Key[]>} by key id */
function readKeys(list) {
  /** @type {Map<string, Key[]>} */
  const keys = new Map()
  for (const jwk of list) {
    const key = readKey(jwk)
    if (key === undefined) continue
    const same = keys.get(jwk.kid)
    if (same === undefined) keys.set(jwk.kid, [key])
    else same.push(key)
  }
  return keys
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
 * @typedef {{url: string, keys: string}} KnownKeys of one endpoint; `keys`: list of JWKs as JSON
 *
 * @typedef {object} JwksOptions
 * @property {() => number} [clock] ms
 * @property {typeof globalThis.fetch} [fetch]
 * @property {number} [timeout] ms for one request
 * @property {number} [ttl] ms that a key set is kept
 * @property {number} [minInterval] ms between two requests to one endpoint
 * @property {(error: Error, kept: number) => void} [onUnreachable] an endpoint cannot be reached; `kept`: its keys that
 *   stay in use. Called once a minute at most
 * @property {(url: string, keys: string) => void} [onKeys] an endpoint has published other keys than before
 * @property {readonly KnownKeys[]} [known] keys to use while their endpoint cannot be reached; it is asked first
 */

/** The key sets of a gateway's worker, by URL. A reload of the configuration keeps them. */
export class Jwks {
  /** @type {Map<string, KeySet>} in the order of their last answers */
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
   * @returns {Key[] | Promise<Key[]>} empty if the endpoint does not know the key id; rejects if it is unreachable and
   *   has never published that key
   */
  find(url, kid) {
    const set = this.#sets.get(url)
    if (set === undefined) {
      if (this.#pending >= MAX_PENDING) return Promise.reject(tooMany())
      return this.#ask(url, this.#add(url), kid)
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
        // Nobody waits for an endpoint that is down.
        if (now - set.askedAt >= RETRY_MS) this.#request(url, set)?.catch(() => {})
        return keys
      }
    }
    return this.#ask(url, set, kid)
  }

  /** @param {string} url @param {KeySet} set @param {string} kid @returns {Promise<Key[]>} */
  async #ask(url, set, kid) {
    try {
      const request = this.#request(url, set)
      if (request === null) throw tooMany()
      await request
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

  /**
   * @param {string} url @param {KeySet} set
   * @returns {Promise<void> | null} the request under way, or a new one; null: too many are
   */
  #request(url, set) {
    if (set.pending === null) {
      if (this.#pending >= MAX_PENDING) return null
      this.#pending++
      set.pending = this.#refresh(url, set).finally(() => {
        set.pending = null
        this.#pending--
      })
    }
    return set.pending
  }

  /** @param {string} url */
  #add(url) {
    if (this.#sets.size >= MAX_SETS) {
      const idle = [...this.#sets].filter(([, { pending }]) => pending === null)
      // Sets without keys leave first: made-up endpoints must not drive out good ones.
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
    const wait = Math.min(set.askedAt + minInterval - clock(), minInterval)
    if (wait > 0) await delay(wait)
    try {
      const list = await this.#fetchKeys(url)
      set.keys = readKeys(list)
      set.failed = false
      this.#tell(url, set, JSON.stringify(list))
      // After this time all ids leave: the next request for one adds it again.
      if (clock() - set.fetchedAt >= UNKNOWN_TTL_MS) set.unknown.clear()
      set.fetchedAt = clock()
      this.#sets.delete(url)
      this.#sets.set(url, set)
    } catch (error) {
      set.failed = true
      this.#report(error, set.keys.size)
      throw error
    } finally {
      set.askedAt = clock()
    }
  }

  /** @param {string} url @param {KeySet} set @param {string} keys */
  #tell(url, set, keys) {
    const digest = sha256(keys)
    if (set.digest?.equals(digest)) return
    set.digest = digest
    this.#onKeys?.(url, keys)
  }

  /** @param {Error} error @param {number} kept */
  #report(error, kept) {
    const now = this.#options.clock()
    if (now - this.#reportedAt < REPORT_MS) return
    this.#reportedAt = now
    this.#onUnreachable?.(error, kept)
  }

  /** @param {string} url @returns {Promise<any[]>} JWKs */
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

  /** @param {string} url @returns {Promise<any[]>} JWKs */
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
    if (body.keys.length > MAX_KEYS) throw new Error(`the response has more than ${MAX_KEYS} keys`)
    return body.keys
  }
}
