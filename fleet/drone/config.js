// What a drone is launched with, which nothing from afar can change.

import { compare } from './compare.js'

/** What there may be, each an example of its type, and what holds where nothing is said. */
const DEFAULTS = {
  id: '',
  run: '',
  secret: '',
  controller: '',
  listen: '',
  allow: [''],
  apiKey: '',
  tokenSecret: '',
  perProcess: 18_000,
  orphanAfter: 30,
  exitAfter: 600,
  hangAfter: 20,
}

/**
 * @param {string} json
 * @returns {typeof DEFAULTS & {host: string, port: number}} `host`, `port`: where to dial or to listen
 * @throws {Error} with one line
 */
export function parseConfig(json) {
  const config = { ...DEFAULTS, ...JSON.parse(json) }
  for (const name in config) compare(DEFAULTS[/** @type {'id'} */ (name)], config[name], name)
  const { id, run, secret, controller, listen } = config
  const place = /^\[?([^:]+|[\da-f:]+)\]?:(\d+)$/.exec(controller + listen)
  if (!id || !run || !place || !/^[\da-f]{64}$/i.test(secret))
    throw new Error('id, run, secret (64 hex digits), and controller or listen (host:port) are needed')
  return { ...config, host: place[1], port: Number(place[2]) }
}
