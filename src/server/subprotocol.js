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
