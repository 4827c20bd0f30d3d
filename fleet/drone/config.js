// What a drone is launched with, which nothing from afar can change.

/** A launch configuration that cannot be; the message is one line. */
export class ConfigError extends Error {}

/** @param {RegExp} shape @returns {(value: any) => boolean} */
const text = shape => value => typeof value === 'string' && shape.test(value)
/** @param {number} least @returns {(value: any) => boolean} */
const atLeast = least => value => typeof value === 'number' && value >= least && value < 2 ** 31

const NAME = text(/^[\w.-]{1,64}$/)
const PLACE = text(/^.+:\d{1,5}$/)

/** @type {Record<string, [(value: any) => boolean, string]>} */
const KEYS = {
  id: [NAME, 'a short name'],
  run: [NAME, 'a short name'],
  secret: [text(/^[\da-f]{64}$/i), '64 hex digits'],
  controller: [PLACE, 'host:port'],
  listen: [PLACE, 'host:port'],
  allow: [
    value => Array.isArray(value) && value.length > 0 && value.every(text(/./)),
    'a list of host or host:port',
  ],
  apiKey: [text(/(?:)/), 'text'],
  tokenSecret: [text(/(?:)/), 'text'],
  perProcess: [value => Number.isInteger(value) && value > 0, 'a number of connections'],
  orphanAfter: [atLeast(0), 'seconds'],
  exitAfter: [atLeast(0), 'seconds'],
  hangAfter: [atLeast(1), 'seconds'],
}

/**
 * @param {string} json
 * @returns {import('../schema.js').LaunchConfig}
 * @throws {ConfigError}
 */
export function parseConfig(json) {
  let config
  try {
    config = JSON.parse(json)
  } catch (error) {
    throw new ConfigError(`it is no JSON: ${error.message}`)
  }
  if (config?.constructor !== Object) throw new ConfigError('it is no JSON object')
  for (const key of Object.keys(config))
    if (!Object.hasOwn(KEYS, key)) throw new ConfigError(`"${key}" is unknown`)
  for (const key of ['id', 'run', 'secret', 'allow'])
    if (config[key] === undefined) throw new ConfigError(`"${key}" is missing`)
  for (const [key, value] of Object.entries(config))
    if (!KEYS[key][0](value)) throw new ConfigError(`"${key}" is not ${KEYS[key][1]}`)
  if ((config.controller === undefined) === (config.listen === undefined))
    throw new ConfigError('either "controller" or "listen" is needed')
  return config
}

/**
 * @param {string} place `host:port`, `[::1]:8000`
 * @returns {{host: string, port: number}}
 */
export function placeOf(place) {
  const colon = place.lastIndexOf(':')
  return { host: place.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(place.slice(colon + 1)) }
}
