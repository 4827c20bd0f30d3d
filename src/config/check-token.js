import { createPublicKey } from 'node:crypto'
import { createEndpoint } from './jwks-endpoint.js'
import { compilePattern } from './pattern.js'
import { show } from './values.js'

/** @import { Refuse } from './error.js' */

/** @param {string} key @param {string} pattern @param {Refuse} refuse */
export function checkPattern(key, pattern, refuse) {
  if (pattern === '') return
  try {
    compilePattern(pattern)
  } catch (error) {
    refuse([key], error.message)
  }
}

/** @param {string} key @param {string} pem @param {string} type name in node:crypto @param {Refuse} refuse */
function checkPem(key, pem, type, refuse) {
  if (pem === '') return
  let found
  try {
    found = createPublicKey(pem).asymmetricKeyType
  } catch {
    refuse([key], 'is not a public key or certificate in PEM')
    return
  }
  if (found !== type) refuse([key], `is a key of type ${found}, not ${type}`)
}

/** @param {string} path of the block @param {Record<string, any>} token @param {Refuse} refuse */
export function checkToken(path, token, refuse) {
  for (const claim of ['audience', 'issuer']) {
    const pattern = `${claim}_regex`
    if (token[claim] !== '' && token[pattern] !== '') {
      refuse(
        [`${path}.${claim}`, `${path}.${pattern}`],
        `cannot be combined with ${pattern}; set only one of them`,
      )
    }
    checkPattern(`${path}.${pattern}`, token[pattern], refuse)
  }
  if (!/^[a-zA-Z_]*$/.test(token.user_id_claim)) {
    refuse([`${path}.user_id_claim`], `${show(token.user_id_claim)} may contain only letters and _`)
  }
  checkPem(`${path}.rsa_public_key`, token.rsa_public_key, 'rsa', refuse)
  checkPem(`${path}.ecdsa_public_key`, token.ecdsa_public_key, 'ec', refuse)
  if (token.jwks_public_endpoint === '') return
  try {
    createEndpoint(token.jwks_public_endpoint, token)
  } catch (error) {
    refuse([`${path}.jwks_public_endpoint`], error.message)
  }
}
