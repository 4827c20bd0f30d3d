// The JWKS address, with parts from the token's issuer or audience: `https://{{tenant}}.example.com/jwks` with
// `issuer_regex: ^https://(?P<tenant>one|two)\.example\.com$`. The token is unverified, so only groups of literal
// values may fill the address.

import { show } from './values.js'

/** @import { Config } from './options.js' */

/** Body of the group, if any. @param {string} pattern @param {string} name */
function groupBody(pattern, name) {
  const open = new RegExp(`\\(\\?P?<${name}>`).exec(pattern)
  if (open === null) return undefined
  const from = open.index + open[0].length
  let depth = 1
  for (let at = from; at < pattern.length; at++) {
    if (pattern[at] === '\\') at++
    else if (pattern[at] === '(') depth++
    else if (pattern[at] === ')' && --depth === 0) return pattern.slice(from, at)
  }
  return undefined
}

/** Non-empty literals separated by `|`: no class, wildcard, repetition or inner group. */
const alternation = /^(?:[^\\.*+?()[\]{}|^$]|\\[^a-zA-Z0-9])+(?:\|(?:[^\\.*+?()[\]{}|^$]|\\[^a-zA-Z0-9])+)*$/

/** Also control characters, and unencodable lone surrogates. */
const SEPARATOR = /[/\\?#@:\p{Cc}\p{Cs}]/u

/** Nested percent-encodings; more are refused. */
const MAX_DECODES = 3

/**
 * Whether a value stays in its part of the address, even if decoded repeatedly.
 * @param {string} value @param {number} [decodes] left
 * @returns {boolean}
 */
function staysInPlace(value, decodes = MAX_DECODES) {
  if (value === '' || value === '.' || value === '..' || SEPARATOR.test(value)) return false
  if (!value.includes('%')) return true
  try {
    return decodes > 0 && staysInPlace(decodeURIComponent(value), decodes - 1)
  } catch {
    return false
  }
}

/**
 * @param {string} endpoint may contain `{{name}}`
 * @param {Partial<Config['client']['token']>} token
 * @returns {(groups: Record<string, string>) => string | undefined} undefined: empty or unsafe part
 * @throws {Error} if no token could fill the address safely; the message follows the key
 */
export function createEndpoint(endpoint, { issuer_regex, audience_regex, ...token }) {
  const insecure = Boolean(token.insecure_skip_jwks_endpoint_safety_check)
  // Parts with an odd index are names.
  const parts = endpoint.split(/\{\{\s*(\w+)\s*\}\}/)
  const sample = parts.map((part, at) => (at % 2 === 0 ? part : 'x')).join('')
  if (!/^https?:$/.test(URL.canParse(sample) ? new URL(sample).protocol : '')) {
    throw new Error(`${show(endpoint)} is not an http or https URL`)
  }
  if (parts.length === 1) return () => endpoint
  for (let at = 1; at < parts.length; at += 2) {
    const name = parts[at]
    const bodies = [issuer_regex, audience_regex]
      .map(pattern => groupBody(pattern || '', name))
      .filter(body => body !== undefined)
    if (bodies.length === 0) {
      throw new Error(`{{${name}}} is not a named group of issuer_regex or audience_regex`)
    }
    if (!insecure && !bodies.every(body => alternation.test(body))) {
      throw new Error(
        `{{${name}}} is a group that matches more than a list of literals like (?P<${name}>one|two)`,
      )
    }
  }
  return groups => {
    let url = parts[0]
    for (let at = 1; at < parts.length; at += 2) {
      const value = groups[parts[at]]
      if (!value) return undefined
      // A literal value may deliberately be a path.
      if (insecure && !staysInPlace(value)) return undefined
      url += (insecure ? encodeURIComponent(value) : value) + parts[at + 1]
    }
    return url
  }
}
