// What a drone is launched with, which nothing from afar can change.

import { compare, FRACTION } from './compare.js'

const NEEDED = { id: '', run: '', secret: '', allow: [''] }
const OTHERS = {
  controller: '',
  listen: '',
  apiKey: '',
  tokenSecret: '',
  perProcess: 0,
  orphanAfter: FRACTION,
  exitAfter: FRACTION,
  hangAfter: FRACTION,
}

/**
 * @param {string} json
 * @returns {{config: import('../schema.js').LaunchConfig, place: {host: string, port: number, secret: string}}} `place`: where to dial or
 *   to listen
 * @throws {Error} with one line
 */
export function parseConfig(json) {
  const config = Object(JSON.parse(json))
  compare(NEEDED, config)
  compare(OTHERS, { ...OTHERS, ...config })
  for (const key in config) if (!(key in { ...NEEDED, ...OTHERS })) throw new Error(`"${key}" is unknown`)
  const { controller, listen, secret } = config
  if (!/^[\da-f]{64}$/i.test(secret)) throw new Error('"secret" is not 64 hex digits')
  const [, host, port] = /^\[?(.+?)\]?:(\d+)$/.exec(controller ?? listen) ?? []
  if (!host || (controller && listen)) throw new Error('either "controller" or "listen" is host:port')
  return { config, place: { host, port: Number(port), secret } }
}
