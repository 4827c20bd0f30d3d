// What a drone is launched with, which nothing from afar can change.

const NAME = /^[\w.-]{1,64}$/
const PLACE = /^.+:\d{1,5}$/
const SECONDS = /^\d{1,6}(\.\d+)?$/

/** What the values look like as texts. @type {Record<string, RegExp>} */
const KEYS = {
  id: NAME,
  run: NAME,
  secret: /^[\da-f]{64}$/i,
  allow: /^[^,]+(,[^,]+)*$/,
  controller: PLACE,
  listen: PLACE,
  apiKey: /./,
  tokenSecret: /./,
  perProcess: /^[1-9]\d{0,6}$/,
  orphanAfter: SECONDS,
  exitAfter: SECONDS,
  hangAfter: SECONDS,
}
const NEEDED = ['id', 'run', 'secret', 'allow']

/**
 * @param {string} json
 * @returns {import('../schema.js').LaunchConfig}
 * @throws {Error} with one line
 */
export function parseConfig(json) {
  const config = Object(JSON.parse(json))
  for (const key of new Set([...NEEDED, ...Object.keys(config)])) {
    if (!Object.hasOwn(KEYS, key)) throw new Error(`"${key}" is unknown`)
    const value = config[key]
    const kind = key === 'allow' ? Array.isArray(value) : /string|number/.test(typeof value)
    if (!kind || !KEYS[key].test(value))
      throw new Error(`"${key}" ${value === undefined ? 'is missing' : `does not look like ${KEYS[key]}`}`)
  }
  if (!config.controller === !config.listen) throw new Error('either "controller" or "listen" is needed')
  return config
}

/**
 * @param {string} place `host:port`, `[::1]:8000`
 * @returns {{host: string, port: number}}
 */
export function placeOf(place) {
  const [, host, port] = /** @type {string[]} */ (/^\[?(.+?)\]?:(\d+)$/.exec(place))
  return { host, port: Number(port) }
}
