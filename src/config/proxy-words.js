// What the check of a configuration and the proxies themselves know of endpoints and headers. Of its own, because
// check-proxies.js loads the table of all options, which workers do not need.

/** Headers that a proxy sets itself, or that belong to one connection only (RFC 9110, section 7.6.1). */
const OWN_HEADERS = new Set([
  ...['host', 'connection', 'upgrade', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'expect'],
  ...['content-length', 'content-type', 'accept-encoding'],
])

/** @param {string} name in lower case @returns {boolean} whether a proxy never forwards it */
export const isOwnHeader = name => OWN_HEADERS.has(name) || name.startsWith('proxy-')

/** @param {string} endpoint */
export const isHttp = endpoint => /^https?:\/\//i.test(endpoint)
