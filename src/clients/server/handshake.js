/**
 * The first known subprotocol that the client offers, '' if none. Some clients send an empty header.
 * @param {string} offered the Sec-WebSocket-Protocol header, '' if absent
 * @param {string[]} known
 * @returns {string}
 */
export function chooseSubprotocol(offered, known) {
  if (offered === '') return ''
  for (const part of offered.split(',')) {
    const name = part.trim()
    if (known.includes(name)) return name
  }
  return ''
}

/** Offer passed to the libraries' negotiators, which are too strict or too lax with the offers of clients. */
export const DEFLATE_OFFER = 'permessage-deflate'

const NO_VALUE = /^(?:server|client)_no_context_takeover$/
const WINDOW_BITS = /^(?:8|9|1[0-5])$/

/**
 * Whether a client supports permessage-deflate as this server uses it: each message by itself, in a window of 15 bits
 * (RFC 7692, section 7.1). A client may offer several variants and other extensions; malformed or unknown ones are
 * declined, not refused.
 * @param {string} offers the Sec-WebSocket-Extensions header, '' if absent
 * @returns {boolean}
 */
export function offersDeflate(offers) {
  return offers !== '' && offers.split(',').some(isAcceptableOffer)
}

/** @param {string} offer */
function isAcceptableOffer(offer) {
  const [name, ...parameters] = offer.split(';')
  if (name.trim() !== DEFLATE_OFFER) return false
  const seen = new Set()
  for (const parameter of parameters) {
    const mark = parameter.indexOf('=')
    const key = (mark < 0 ? parameter : parameter.slice(0, mark)).trim()
    const value =
      mark < 0
        ? null
        : parameter
            .slice(mark + 1)
            .trim()
            .replace(/^"(.*)"$/, '$1')
    if (seen.has(key) || !isSupportedParameter(key, value)) return false
    seen.add(key)
  }
  return true
}

/** @param {string} key @param {string | null} value */
function isSupportedParameter(key, value) {
  if (NO_VALUE.test(key)) return value === null
  // The client may use a smaller window, which the server can read.
  if (key === 'client_max_window_bits') return value === null || WINDOW_BITS.test(value)
  return key === 'server_max_window_bits' && value === '15'
}
