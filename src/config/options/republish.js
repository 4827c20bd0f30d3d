import { kafkaConnection, natsConnection } from './consumers.js'
import { bool, clientTls, duration, int, named, newStart, oneOrMore, string, strings } from './make.js'

const tls = clientTls('Use TLS.', 'the server')

const TEMPLATE = '`{channel}` and `{namespace}` are replaced.'

const rabbitmq = {
  urls: strings(
    'Servers, `amqp://user:password@host:port` or `amqps://`; the next one is tried when one fails.',
    { secret: true },
  ),
  tls,
  vhost: string('Virtual host. Empty: that of the address.'),
  exchange: string(`Exchange. ${TEMPLATE}`, { default: '{channel}' }),
  exchange_type: string('Type of the exchange, for `declare`.', {
    default: 'fanout',
    values: ['fanout', 'direct', 'topic', 'headers'],
  }),
  declare: bool('Declare exchanges as durable. Off: the exchanges must exist.'),
  routing_key: string(`Routing key. ${TEMPLATE}`),
  persistent: bool('Messages survive a restart of the server in durable queues.', { default: true }),
  mandatory: bool('Unroutable messages are returned and counted. Needs `confirm`.'),
  confirm: bool('Wait for the confirm of each message. Off: a written message counts as sent.', {
    default: true,
  }),
  max_in_flight: int(1000, 'Maximum unconfirmed messages.', { min: 1, max: 100_000 }),
}

const redisStream = {
  address: string('Redis, in a form of `engine.redis.address`.', { secret: true }),
  user: string('User of Redis.'),
  password: string('Password of Redis.', { secret: true }),
  db: int(0, 'Database of Redis.', { max: 15 }),
  tls,
  stream: string(`Key of the stream. ${TEMPLATE}`, { default: 'halley.republish' }),
  max_length: int(
    1_000_000,
    'Approximate length at which the oldest entries of a stream are removed. 0: never.',
    {
      unit: 'entries',
    },
  ),
  payload_value: string('Field of the body.', { default: 'payload' }),
  max_in_flight: int(1000, 'Maximum unconfirmed entries.', { min: 1, max: 100_000 }),
}

const natsJetstream = {
  ...natsConnection,
  subject: string(`Subject; a stream must include it. ${TEMPLATE} Required.`),
  max_in_flight: int(1000, 'Maximum unconfirmed messages.', { min: 1, max: 100_000 }),
}

const kafka = {
  ...kafkaConnection,
  topic: string(`Topic, which must exist. ${TEMPLATE} Required.`),
  max_in_flight: int(1000, 'Maximum unconfirmed messages.', { min: 1, max: 100_000 }),
}

/** Blocks of the destinations, by `type`. */
export const destinationTypes = /** @type {const} */ (['rabbitmq', 'redis_stream', 'nats_jetstream', 'kafka'])

export const republishMembers = newStart({
  enabled: bool('Republish.'),
  type: string(`Destination: ${destinationTypes.map(type => `\`${type}\``).join(', ')}.`, {
    values: ['', ...destinationTypes],
  }),
  channels: strings('Patterns of channels: `*` any text, `?` one character, `[ab]`, `{a,b}`.'),
  namespaces: strings('Namespaces, all channels of each.'),
  sources: oneOrMore('Sources of publications: `client`, `api`, `consumer`.', { default: 'client' }),
  include_meta: bool("Add the meta of the client's connection as `user_data`."),
  format: string('Body of a message: `halley`, `carotene`, or `data` (the unchanged publication).', {
    default: 'halley',
    values: ['halley', 'carotene', 'data'],
  }),
  queue_max_size: int(10_000, 'Maximum queued messages.', { unit: 'messages', min: 1, max: 10_000_000 }),
  queue_max_bytes: int(
    16 * 1024 * 1024,
    'Maximum memory of queued messages: bodies, and 300 bytes for each.',
    { unit: 'bytes', min: 65_536, max: 4_294_967_296 },
  ),
  overflow: string(
    'If the queue is full: `drop_oldest` or `drop_new` drops a message, `block` returns error 100 to the publisher.',
    { default: 'drop_oldest', values: ['drop_oldest', 'drop_new', 'block'] },
  ),
  required: bool('The reply to a publish waits for the confirm; without one it is error 100.'),
  required_timeout: duration('5s', 'Maximum wait of `required`.', { max: 300_000 }),
  rabbitmq,
  redis_stream: redisStream,
  nats_jetstream: natsJetstream,
  kafka,
})

export const republishOptions = newStart({
  cluster_name: string(
    'Name of this cluster in the header `halley-origin` of republished messages. Must be the same on every node. Empty: derived from the addresses and the prefix of Redis, or `node.name`. Halley only.',
  ),
  republish: named(
    'Destinations of accepted publications: objects with a `name` and the options below. Halley only.',
    republishMembers,
  ),
})
