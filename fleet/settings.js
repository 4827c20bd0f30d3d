// The table of the fleet's settings: name, default, help text and parser of `halley fleet set NAME VALUE`.

/** @import { FleetSettings } from './schema.js' */

/** An invalid value of a setting; the message is one line. */
export class SettingError extends Error {}

export const TRANSPORTS = Object.freeze(
  /** @type {const} */ ([
    'websocket',
    'http_stream',
    'sse',
    'long_poll',
    'uni_websocket',
    'uni_http_stream',
    'uni_sse',
  ]),
)

/** @typedef {{name: keyof FleetSettings, default: any, doc: string, parse: (text: string) => any}} Setting */

/** Accepts 1,000, 1_000, 20k and 1.5m. @param {number} min @param {number} max @returns {(text: string) => number} */
const number = (min, max) => text => {
  const match = /^(\d[\d_,]*(?:\.\d+)?)([km]?)$/i.exec(text.trim())
  const unit = { k: 1e3, m: 1e6, '': 1 }[match?.[2].toLowerCase() ?? ''] ?? 1
  const value = match ? Number(match[1].replace(/[_,]/g, '')) * unit : Number.NaN
  if (!(value >= min && value <= max))
    throw new SettingError(`"${text}" is not a number from ${min} to ${max}`)
  return value
}

/** @param {number} min @param {number} max @returns {(text: string) => number} */
const integer = (min, max) => text => {
  const value = number(min, max)(text)
  if (!Number.isInteger(value)) throw new SettingError(`"${text}" is not a whole number`)
  return value
}

/** @param {string} text */
const bool = text => {
  if (!/^(?:true|false|on|off|yes|no)$/.test(text)) throw new SettingError(`"${text}" is not true or false`)
  return /^(?:true|on|yes)$/.test(text)
}

/** @param {readonly string[]} values @returns {(text: string) => string} */
const oneOf = values => text => {
  if (!values.includes(text)) throw new SettingError(`"${text}" is not one of ${values.join(', ')}`)
  return text
}

/** @param {string} text @returns {string[]} */
const list = text =>
  text
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)

/** @param {string} text @returns {string[]} base URLs */
const urls = text => {
  const found = list(text).map(part => {
    const url = URL.canParse(part) ? new URL(part) : null
    if (url === null || !/^(?:http|ws)s?:$/.test(url.protocol) || url.hostname === '')
      throw new SettingError(`"${part}" is not a URL like http://127.0.0.1:8000`)
    return `${url.protocol.replace('ws', 'http')}//${url.host}`
  })
  if (found.length === 0) throw new SettingError('no URL given')
  return found
}

/** @type {readonly Setting[]} */
export const SETTINGS = Object.freeze([
  { name: 'n', default: 0, parse: integer(0, 1e9), doc: 'connections of all drones together' },
  { name: 'host', default: [], parse: urls, doc: 'base URLs of the target, separated by commas' },
  { name: 'transport', default: 'websocket', parse: oneOf(TRANSPORTS), doc: TRANSPORTS.join(', ') },
  {
    name: 'rate',
    default: 0,
    parse: number(0, 1e7),
    doc: 'connections opened per second; 0: limited only by concurrency',
  },
  {
    name: 'concurrency',
    default: 500,
    parse: integer(1, 1e5),
    doc: 'connections that a drone opens at the same time',
  },
  {
    name: 'addresses',
    default: [],
    parse: list,
    doc: 'local addresses to connect from: 127.0.1.1-127.0.1.50,10.0.0.7',
  },
  {
    name: 'ports',
    default: '',
    parse: text => text.trim(),
    doc: 'source ports on each address, in sequence: 1024-65535',
  },
  {
    name: 'channels',
    default: [],
    parse: list,
    doc: 'channels of each connection: s{1..1000}, own:{own}, g:{group 10}, r{random 1..100}',
  },
  {
    name: 'recover',
    default: false,
    parse: bool,
    doc: 'whether clients recover subscriptions after a reconnect',
  },
  {
    name: 'user',
    default: '',
    parse: text => text.trim(),
    doc: 'user id of a connection: u{own}; needs --token-secret',
  },
  { name: 'churn', default: 0, parse: number(0, 1e6), doc: 'connections closed and replaced per second' },
  { name: 'backoff_min', default: 500, parse: integer(0, 1e6), doc: 'first delay before a reconnect, ms' },
  {
    name: 'backoff_max',
    default: 20_000,
    parse: integer(0, 1e7),
    doc: 'maximum delay before a reconnect, ms',
  },
  { name: 'publish_rate', default: 0, parse: number(0, 1e7), doc: 'messages published per second; 0: none' },
  { name: 'publish_host', default: [], parse: urls, doc: 'base URLs for publishing; default: those of host' },
  { name: 'publish_size', default: 512, parse: integer(96, 1e6), doc: 'bytes of a message' },
  {
    name: 'publish_channels',
    default: [],
    parse: list,
    doc: 'channels to publish to: s{1..1000}; several entries need as many publishers',
  },
  {
    name: 'publish_order',
    default: 'random',
    parse: oneOf(['random', 'sequential']),
    doc: 'order of the channels: random or sequential',
  },
  {
    name: 'publish_via',
    default: 'api',
    parse: oneOf(['api', 'single', 'client']),
    doc: 'api: batches over the server API, needs --api-key; single: a request per message; client: publish commands',
  },
  {
    name: 'publish_flat',
    default: false,
    parse: bool,
    doc: 'publish the next message as soon as one is confirmed, at any publish_rate above 0',
  },
  {
    name: 'publish_lanes',
    default: 0,
    parse: integer(0, 10_000),
    doc: 'pending requests of a publisher; 0: 4 batches, or 32 single ones',
  },
  { name: 'publishers', default: 1, parse: integer(1, 10_000), doc: 'number of drones that publish' },
])

/** @returns {FleetSettings} */
export const defaultSettings = () =>
  /** @type {any} */ (
    Object.fromEntries(SETTINGS.map(({ name, default: value }) => [name, structuredClone(value)]))
  )
