/**
 * @param {string} offered the Sec-WebSocket-Protocol header, '' if absent or empty
 * @param {string[]} known
 */
export function chooseSubprotocol(offered, known) {
  if (offered === '') return ''
  const names = offered.split(',').map(name => name.trim())
  return names.find(name => known.includes(name)) ?? ''
}

/** Passed to the libraries: their negotiation is too strict or too lax. */
export const DEFLATE_OFFER = 'permessage-deflate'

/** Accepted parameters. The client may use a smaller window. */
const PARAMETERS = [
  /^(?:server|client)_no_context_takeover$/,
  /^client_max_window_bits(?:\s*=\s*("?)(?:8|9|1[0-5])\1)?$/,
  /^server_max_window_bits\s*=\s*("?)15\1$/,
]

/**
 * Whether a client supports permessage-deflate without context takeover in a window of 15 bits (RFC 7692, section 7.1).
 * Skips unknown and malformed offers.
 * @param {string} offers the Sec-WebSocket-Extensions header, '' if absent
 */
export const offersDeflate = offers => offers !== '' && offers.split(',').some(isAcceptable)

/** @param {string} offer */
function isAcceptable(offer) {
  const [name, ...parameters] = offer.split(';').map(part => part.trim())
  const keys = new Set(parameters.map(parameter => /^\w+/.exec(parameter)?.[0]))
  const fits = (/** @type {string} */ parameter) => PARAMETERS.some(pattern => pattern.test(parameter))
  return name === DEFLATE_OFFER && keys.size === parameters.length && parameters.every(fits)
}
