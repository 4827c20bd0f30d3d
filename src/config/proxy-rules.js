// Rules for endpoints and headers of proxies that the configuration check and the proxies share. They have a file of
// their own because check-proxies.js loads the table of all options, which workers do not need.

/** Headers that a proxy sets itself, or that belong to one connection only (RFC 9110, section 7.6.1). */
const NEVER_FORWARDED = new Set([
  ...['host', 'connection', 'upgrade', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'expect'],
  ...['content-length', 'content-type', 'accept-encoding'],
])

/** @param {string} name of a client's header, in lower case @returns {boolean} */
export const isNeverForwarded = name => NEVER_FORWARDED.has(name) || name.startsWith('proxy-')

/** @param {string} endpoint of a proxy @returns {boolean} false: gRPC */
export const isHttpEndpoint = endpoint => /^https?:\/\//i.test(endpoint)
