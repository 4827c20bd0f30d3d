import { kafkaConnection, natsConnection } from './consumers.js'
import { bool, clientTls, duration, int, named, newStart, oneOrMore, string, strings, under } from './make.js'

const tls = clientTls('tls', 'Use TLS.', 'the server', 'address')

const TEMPLATE = '`{channel}` and `{namespace}` are replaced.'

const rabbitmq = [
  strings(
    'urls',
    'Servers, `amqp://user:password@host:port` or `amqps://`; the next one is tried when one fails.',
    { secret: true },
  ),
  ...tls,
  string('vhost', '', 'Virtual host. Empty: that of the address.'),
  string('exchange', '{channel}', `Exchange. ${TEMPLATE}`),
  string('exchange_type', 'fanout', 'Type of the exchange, for `declare`.', {
    values: ['fanout', 'direct', 'topic', 'headers'],
  }),
  bool('declare', 'Declare exchanges, durable ones. Off: an exchange must exist.'),
  string('routing_key', '', `Routing key. ${TEMPLATE}`),
  bool('persistent', 'Messages survive a restart of the server in durable queues.', true),
  bool('mandatory', 'A message that no queue takes is returned, and counted. Needs `confirm`.'),
  bool('confirm', 'Wait for the confirm of each message. Off: written is sent.', true),
  int('max_in_flight', 1000, 'Messages without a confirm.', { min: 1, max: 100_000 }),
]

const redisStream = [
  string('address', '', 'Redis, in a form of `engine.redis.address`.', { secret: true }),
  string('user', '', 'User of Redis.'),
  string('password', '', 'Password of Redis.', { secret: true }),
  int('db', 0, 'Database of Redis.', { max: 15 }),
  ...tls,
  string('stream', 'halley.republish', `Key of the stream. ${TEMPLATE}`),
  int(
    'max_length',
    1_000_000,
    'Length at which the oldest entries of a stream are removed, about. 0: never.',
    { unit: 'entries' },
  ),
  string('payload_value', 'payload', 'Field of the body.'),
  int('max_in_flight', 1000, 'Entries without an answer.', { min: 1, max: 100_000 }),
]

const natsJetstream = [
  ...natsConnection,
  string('subject', '', `Subject, which a stream must have. ${TEMPLATE} Required.`),
  int('max_in_flight', 1000, 'Messages without an answer.', { min: 1, max: 100_000 }),
]

const kafka = [
  ...kafkaConnection,
  string('topic', '', `Topic, which must exist. ${TEMPLATE} Required.`),
  int('max_in_flight', 1000, 'Messages without an answer.', { min: 1, max: 100_000 }),
]

/** Blocks of the destinations, by `type`. */
export const destinationTypes = Object.freeze(['rabbitmq', 'redis_stream', 'nats_jetstream', 'kafka'])

const members = newStart([
  bool('enabled', 'Republish.'),
  string('type', '', `Destination: ${destinationTypes.map(type => `\`${type}\``).join(', ')}.`, {
    values: ['', ...destinationTypes],
  }),
  strings('channels', 'Patterns of channels: `*` any text, `?` one character, `[ab]`, `{a,b}`.'),
  strings('namespaces', 'Namespaces, all channels of each.'),
  oneOrMore('sources', 'client', 'Who publishes: `client`, `api`, `consumer`.'),
  bool('include_meta', "Add the meta of the client's connection as `user_data`."),
  string(
    'format',
    'halley',
    'Body of a message: `halley`, `carotene`, or `data` (the publication as it is).',
    { values: ['halley', 'carotene', 'data'] },
  ),
  int('queue_max_size', 10_000, 'Maximum messages that wait.', { unit: 'messages', min: 1, max: 10_000_000 }),
  int(
    'queue_max_bytes',
    16 * 1024 * 1024,
    'Maximum memory of messages that wait: bodies, and 300 bytes for each.',
    { unit: 'bytes', min: 65_536, max: 4_294_967_296 },
  ),
  string(
    'overflow',
    'drop_oldest',
    'With a full queue: `drop_oldest` or `drop_new` message, or `block`: the publisher gets error 100.',
    { values: ['drop_oldest', 'drop_new', 'block'] },
  ),
  bool('required', 'The reply to a publish waits for the confirm; without one it is error 100.'),
  duration('required_timeout', '5s', 'Maximum wait of `required`.', { max: 300_000 }),
  ...under('rabbitmq', rabbitmq),
  ...under('redis_stream', redisStream),
  ...under('nats_jetstream', natsJetstream),
  ...under('kafka', kafka),
])

/** Republishing (docs/republish.md). */
export const republishOptions = newStart([
  string(
    'cluster_name',
    '',
    'Name of this cluster in the header `halley-origin` of republished messages, the same on every node. Empty: made of the addresses and the prefix of Redis, or `node.name`. Halley only.',
  ),
  named(
    'republish',
    'Destinations of accepted publications: objects with a `name` and the options below. Halley only.',
    members,
  ),
])
export { members as republishMembers }
