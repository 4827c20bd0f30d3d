import { createPublicKey } from 'node:crypto'
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
 * The inside of a named group: what stands between `(?P<name>` and its closing bracket.
 * @param {string} pattern
 * @param {string} name
 * @returns {string | undefined}
 */
function groupBody(pattern, name) {
  const opening = [`(?P<${name}>`, `(?<${name}>`].find(text => pattern.includes(text))
  if (opening === undefined) return undefined
  const start = pattern.indexOf(opening) + opening.length
  let depth = 1
  for (let i = start; i < pattern.length; i++) {
    if (pattern[i] === '\\') i++
    else if (pattern[i] === '(') depth++
    else if (pattern[i] === ')' && --depth === 0) return pattern.slice(start, i)
  }
  return undefined
}

/** Words, joined by `|`; a character with a meaning of its own only behind a backslash. */
const LITERALS = /^(?:[^\\.*+?()[\]{}|^$]|\\[^a-zA-Z0-9])+(?:\|(?:[^\\.*+?()[\]{}|^$]|\\[^a-zA-Z0-9])+)*$/

/**
 * A JWKS URL that is filled from the token must not lead wherever the token wants: the token is not verified yet.
 * @param {string} path
 * @param {Record<string, any>} token
 * @param {Say} say
 */
function checkJwks(path, token, say) {
  const key = `${path}.jwks_public_endpoint`
  const url = token.jwks_public_endpoint
  if (url === '') return
  if (!/^https?:\/\/./.test(url) || !URL.canParse(url.replace(/\{\{[^}]*\}\}/g, 'x'))) {
    say([key], `${show(url)} is not a http or https URL`)
    return
  }
  for (const [, name] of url.matchAll(/\{\{([^}]*)\}\}/g)) {
    const body = groupBody(token.issuer_regex, name) ?? groupBody(token.audience_regex, name)
    if (body === undefined) say([key], `{{${name}}} is no named group of issuer_regex or audience_regex`)
    else if (!token.insecure_skip_jwks_endpoint_safety_check && !LITERALS.test(body)) {
      say(
        [key],
        `{{${name}}} is filled from a group that matches more than a list of literals like (?P<${name}>one|two)`,
      )
    }
  }
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
  checkJwks(path, token, say)
}
