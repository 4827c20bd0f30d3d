// Configured keys and their algorithms (server API). A token alone never selects the algorithm: that would make a
// public key an HMAC secret.
import { createRequire } from 'node:module'
import { readPublicKey } from '../../config/pem.js'

/** @import { Algorithm } from 'fast-jwt' */
/** @import { KeyObject } from 'node:crypto' */

const require = createRequire(import.meta.url)

/** @type {Algorithm[]} */
const hmac = ['HS256', 'HS384', 'HS512']
/** @type {Algorithm[]} */
const rsa = ['RS256', 'RS384', 'RS512']
/** @type {Record<string, Algorithm>} */
const curves = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

/** @typedef {(token: string) => boolean} SignatureCheck */

/** @param {string | Buffer} key secret or PEM @param {Algorithm[]} algorithms @returns {SignatureCheck} */
function signatureCheck(key, algorithms) {
  // Loading takes 50 ms.
  const { createVerifier } = /** @type {typeof import('fast-jwt')} */ (require('fast-jwt'))
  // tokens.js checks times: expired tokens cause another error.
  const verify = createVerifier({ key, algorithms, ignoreExpiration: true, ignoreNotBefore: true })
  return token => {
    try {
      verify(token)
      return true
    } catch {
      return false
    }
  }
}

/** @param {KeyObject} key public @returns {Algorithm[]} */
function algorithmsOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }) {
  if (type === 'rsa') return rsa
  if (type === 'ed25519') return ['EdDSA']
  return type === 'ec' ? [curves[details?.namedCurve ?? ''] ?? []].flat() : []
}

/** @param {KeyObject} key public @param {string} [only] allowed algorithm @returns {Map<string, SignatureCheck>} */
export function publicKeyChecks(key, only) {
  const algorithms = algorithmsOf(key).filter(algorithm => only === undefined || algorithm === only)
  if (algorithms.length === 0) return new Map()
  const check = signatureCheck(key.export({ type: 'spki', format: 'pem' }), algorithms)
  return new Map(algorithms.map(algorithm => [algorithm, check]))
}

/** Keys of one configuration block, by algorithm. */
export class StaticKeys {
  /** @type {Map<string, SignatureCheck>} */
  #checks = new Map()
  /** @type {SignatureCheck | null} */
  #previous = null
  #previousUntil
  #clock

  /**
   * @param {any} settings `client.token` or `client.subscription_token`
   * @param {string} name block name, for messages
   * @param {() => number} clock ms
   */
  constructor(settings, name, clock) {
    this.#clock = clock
    this.#previousUntil = settings.hmac_previous_secret_key_valid_until || 0
    if (settings.hmac_secret_key) {
      const check = signatureCheck(Buffer.from(settings.hmac_secret_key), hmac)
      for (const algorithm of hmac) this.#checks.set(algorithm, check)
    }
    if (settings.hmac_previous_secret_key) {
      this.#previous = signatureCheck(Buffer.from(settings.hmac_previous_secret_key), hmac)
    }
    if (settings.rsa_public_key) this.#add(settings.rsa_public_key, 'rsa', `${name}.rsa_public_key`)
    if (settings.ecdsa_public_key) this.#add(settings.ecdsa_public_key, 'ec', `${name}.ecdsa_public_key`)
  }

  /** @param {string} pem @param {'rsa' | 'ec'} type @param {string} name */
  #add(pem, type, name) {
    let key
    try {
      key = readPublicKey(pem, type)
    } catch (error) {
      throw new Error(`${name} ${error.message}`)
    }
    for (const [algorithm, check] of publicKeyChecks(key)) this.#checks.set(algorithm, check)
  }

  /** @param {string} token @param {string} algorithm */
  check(token, algorithm) {
    if (this.#checks.get(algorithm)?.(token)) return true
    if (this.#previous === null || !hmac.includes(/** @type {Algorithm} */ (algorithm))) return false
    if (this.#previousUntil > 0 && this.#clock() > this.#previousUntil * 1000) return false
    return this.#previous(token)
  }
}
