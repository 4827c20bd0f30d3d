/** @typedef {import('../server/contract.js').Exchange} Exchange */

/**
 * Who a proxy in front says that the client is.
 * @param {Exchange} exchange whose handler has not returned yet
 * @param {{client: {user_id_http_header: string}}} config
 * @returns {string} user id, '' if nobody is trusted to say so, or nothing is said
 */
export function trustedUser(exchange, { client }) {
  const { user_id_http_header: header } = client
  return header === '' ? '' : exchange.header(header.toLowerCase())
}

/**
 * @param {Exchange} exchange whose handler has not returned yet
 * @returns {string} the token of `Authorization: Bearer`, '' if there is none
 */
export function bearerToken(exchange) {
  const header = exchange.header('authorization')
  return header === '' ? '' : (/^Bearer +(\S+)$/i.exec(header)?.[1] ?? '')
}
