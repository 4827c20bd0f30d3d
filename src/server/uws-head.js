import { STATUS_CODES } from 'node:http'

/**
 * Must be corked, like all writes of the library.
 *
 * @param {import('uWebSockets.js').HttpResponse} res
 * @param {number} status
 * @param {Record<string, string> | null} headers
 */
export function writeHead(res, status, headers) {
  // 200 is what the library writes by itself.
  if (status !== 200) res.writeStatus(`${status} ${STATUS_CODES[status] ?? 'Unknown'}`)
  if (headers !== null) for (const name in headers) res.writeHeader(name, headers[name])
}
