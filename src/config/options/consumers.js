// Options of consumers: those of each item of the list, and the block of each type.

import { bool, duration, int, named, newStart, oneOrMore, string, strings } from './make.js'
import { redisOptions } from './redis.js'

/** @import { Option, Row } from './make.js' */

/**
 * Publication data mode.
 * @param {string} noun what carries the fields: `header`, `value`, `attribute` @param {string} places where, for the docs
 * @returns {Row[]}
 */
export const dataMode = (noun, places) => {
  const path = (/** @type {string} */ key) => `publication_data_mode.${key}`
  const field = (/** @type {string} */ key, /** @type {string} */ what) =>
    string(
      path(`${key}_${noun}`),
      `centrifugo-${key.replaceAll('_', '-')}`,
      `Name of the ${what} among the ${places}. Empty: off.`,
    )
  return [
    bool(path('enabled'), `The payload is the data of a publication; the ${places} say the rest.`),
    string(
      path(`channels_${noun}`),
      'centrifugo-channels',
      `Name of the channels among the ${places}, separated by commas without spaces.`,
    ),
    field('idempotency_key', 'idempotency key'),
    field('delta', 'flag that permits deltas'),
    field('version', 'version'),
    field('version_epoch', 'epoch of the version'),
    string(
      path(`tags_${noun}_prefix`),
      'centrifugo-tag-',
      'Begin of the names of tags. The rest of a name is that of the tag. Empty: off.',
    ),
  ]
}

/** Options of `engine.redis` that a connection of a consumer or republisher has too. */
const CONNECTION = [
  'cluster_address',
  'sentinel_address',
  'sentinel_master_name',
  'user',
  'password',
  'db',
  'client_name',
  'sentinel_user',
  'sentinel_password',
  'connect_timeout',
  'io_timeout',
]

/** @returns {Row[]} connection to one Redis, its paths relative to a block */
export function redisConnection() {
  const block = 'engine.redis.'
  const rows = redisOptions.map(({ change, ...row }) => ({ ...row, path: row.path.slice(block.length) }))
  return [
    oneOrMore(
      'address',
      '',
      'Address of the one Redis, in the forms of `engine.redis.address`. Required, unless it is a cluster or has sentinels.',
      { secret: true },
    ),
    ...rows.filter(({ path }) => CONNECTION.includes(path) || /^(?:sentinel_)?tls\./.test(path)),
  ]
}

const redisStream = [
  ...redisConnection(),
  strings('streams', 'Keys of the streams, without any prefix. Required.'),
  string('consumer_group', '', 'Name of the consumer group, which is made if it is missing. Required.'),
  duration('visibility_timeout', '30s', 'An entry without success is taken again after this time.', {
    min: 100,
  }),
  int('num_workers', 1, 'Entries of a stream that are in work at the same time.', { min: 1, max: 1024 }),
  string('payload_value', 'payload', 'Field of an entry with the payload.'),
  string(
    'method_value',
    'method',
    'Field of an entry with the method. Without it the payload is an envelope.',
  ),
  ...dataMode('value', 'fields of the entry'),
]

/** Type -> rows of its block, relative to it. @type {Readonly<Record<string, readonly Row[]>>} */
export const consumerTypes = Object.freeze({ redis_stream: redisStream })

/** Types of Centrifugo that Halley does not support yet: a warning, and the consumer does not run. */
export const unsupportedConsumerTypes = ['azure_service_bus', 'google_pub_sub']

/** Of each item of `consumers`. @type {readonly Option[]} */
export const consumerMembers = newStart([
  bool('enabled', 'Run it. The options of its type are checked only then.'),
  string(
    'type',
    '',
    `Type: ${Object.keys(consumerTypes)
      .map(type => `\`${type}\``)
      .join(', ')}. Required.`,
  ),
  ...Object.entries(consumerTypes).flatMap(([type, rows]) =>
    rows.map(row => ({ ...row, path: `${type}.${row.path}` })),
  ),
])

export const consumerOptions = newStart([
  named(
    'consumers',
    'Consumers: objects with a `name` (two or more of `a-zA-Z0-9_`), `enabled`, `type` and a block named like the type.',
    consumerMembers,
  ),
])
