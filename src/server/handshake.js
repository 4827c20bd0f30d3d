/**
 * The first subprotocol the client offers that the server knows; '' if there is none. An empty header, which
 * some clients send, offers nothing.
 *
 * @param {string} offered the Sec-WebSocket-Protocol header of the request, '' if absent
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

/** What is given to the libraries' own negotiators, which are too strict or too lax with what clients send. */
export const DEFLATE_OFFER = 'permessage-deflate'

const NO_VALUE = /^(?:server|client)_no_context_takeover$/
const WINDOW_BITS = /^(?:8|9|1[0-5])$/

/**
 * Whether a client can do with permessage-deflate as this server does it: each message by itself, in a window of 15
 * bits (RFC 7692, section 7.1). A client may offer several variants, and other extensions; what is malformed or unknown
 * is declined, not refused.
 *
 * @param {string} offers the Sec-WebSocket-Extensions header of the request, '' if absent
 * @returns {boolean}
 */
export function offersDeflate(offers) {
  return offers !== '' && offers.split(',').some(acceptable)
}

/** @param {string} offer */
function acceptable(offer) {
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
    if (seen.has(key) || !understood(key, value)) return false
    seen.add(key)
  }
  return true
}

/**
 * @param {string} key
 * @param {string | null} value
 */
function understood(key, value) {
  if (NO_VALUE.test(key)) return value === null
  // The client can do with less; whether it does is up to it.
  if (key === 'client_max_window_bits') return value === null || WINDOW_BITS.test(value)
  return key === 'server_max_window_bits' && value === '15'
}
