import { Listener } from '../server/listener.js'
import { softLimit } from '../stats/process-sample.js'

/** @import { LimitedLog } from '../log.js' */
/** @import { SocketServer } from '../server/contract.js' */

/**
 * @param {any} options `http_server` of the configuration @param {SocketServer} server
 * @param {SocketServer} internal may be the same @param {LimitedLog} log
 */
export function createListener({ address, port, internal_address, internal_port }, server, internal, log) {
  const host = address || '0.0.0.0'
  const endpoints = [{ server, host, port }]
  if (internal !== server)
    endpoints.push({ server: internal, host: internal_address || host, port: internal_port })
  const limit = softLimit()
  const onChange = (/** @type {boolean} */ paused) =>
    paused
      ? log.warn({ limit }, 'too few free descriptors: no new connections are accepted')
      : log.warn({ limit }, 'new connections are accepted again')
  return new Listener(endpoints, { limit, onChange })
}
