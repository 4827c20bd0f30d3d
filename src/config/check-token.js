import { createPublicKey } from 'node:crypto'
import { createEndpoint } from './jwks-endpoint.js'
import { compilePattern } from './pattern.js'
import { show } from './values.js'

/** @typedef {import('./error.js').Say} Say */

/**
 * @param {string} key
 * @param {string} pattern
 * @param {Say} say
 */
export function checkPattern(key, pattern, say) {
  if (pattern === '') return
  try {
    compilePattern(pattern)
  } catch (error) {
    say([key], error.message)
  }
}

/**
 * @param {string} key
 * @param {string} pem
 * @param {string} type as node:crypto names it
 * @param {Say} say
 */
function checkPem(key, pem, type, say) {
  if (pem === '') return
  let found
  try {
    found = createPublicKey(pem).asymmetricKeyType
  } catch {
    say([key], 'is not a public key or certificate in PEM')
    return
  }
  if (found !== type) say([key], `is a key of type ${found}, not ${type}`)
}

/**
 * @param {string} path of the block
 * @param {Record<string, any>} token
 * @param {Say} say
 */
export function checkToken(path, token, say) {
  for (const claim of ['audience', 'issuer']) {
    const pattern = `${claim}_regex`
    if (token[claim] !== '' && token[pattern] !== '') {
      say([`${path}.${claim}`, `${path}.${pattern}`], `excludes ${pattern}; set one of them only`)
    }
    checkPattern(`${path}.${pattern}`, token[pattern], say)
  }
  if (!/^[a-zA-Z_]*$/.test(token.user_id_claim)) {
    say([`${path}.user_id_claim`], `${show(token.user_id_claim)} has other characters than letters and _`)
  }
  checkPem(`${path}.rsa_public_key`, token.rsa_public_key, 'rsa', say)
  checkPem(`${path}.ecdsa_public_key`, token.ecdsa_public_key, 'ec', say)
  if (token.jwks_public_endpoint === '') return
  try {
    createEndpoint(token.jwks_public_endpoint, token)
  } catch (error) {
    say([`${path}.jwks_public_endpoint`], error.message)
  }
}
