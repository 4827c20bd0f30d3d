// Options of consumers: those of each item of the list, and the block of each type.

import {
  bool,
  clientTls,
  duration,
  int,
  named,
  newStart,
  objects,
  oneOrMore,
  string,
  strings,
  under,
} from './make.js'
import { redisConnection } from './redis.js'

/**
 * Publication data mode.
 * @template {string} N
 * @param {N} noun what carries the fields: `header`, `value`, `attribute`
 * @param {string} places where, for the docs
 */
export const dataMode = (noun, places) => {
  const block = 'publication_data_mode'
  /**
   * @template {string} K
   * @param {K} key
   * @param {string} what
   */
  const field = (key, what) =>
    string(
      `${block}.${key}_${noun}`,
      `centrifugo-${key.replaceAll('_', '-')}`,
      `Name of the ${what} among the ${places}. Empty: off.`,
    )
  return [
    bool(`${block}.enabled`, `The payload is the data of a publication; the ${places} say the rest.`),
    string(
      `${block}.channels_${noun}`,
      'centrifugo-channels',
      `Name of the channels among the ${places}, separated by commas without spaces.`,
    ),
    field('idempotency_key', 'idempotency key'),
    field('delta', 'flag that permits deltas'),
    field('version', 'version'),
    field('version_epoch', 'epoch of the version'),
    string(
      `${block}.tags_${noun}_prefix`,
      'centrifugo-tag-',
      'Begin of the names of tags. The rest of a name is that of the tag. Empty: off.',
    ),
  ]
}

/** Of consumers and republishers. */
export const natsConnection = [
  string('url', 'nats://127.0.0.1:4222', 'Where the server is.', { secret: true }),
  string('credentials_file', '', 'File with the credentials of a user. Wins over the others.', {
    file: true,
  }),
  string('username', '', 'User. Wins over `token`.'),
  string('password', '', 'Password of the user.', { secret: true }),
  string('token', '', 'Token.', { secret: true }),
  ...clientTls('tls', 'Use TLS.', 'the server', 'address'),
]

/** Of consumers and republishers. */
export const kafkaConnection = [
  strings('brokers', 'Brokers to begin with, as `host:port`. Required.'),
  duration('dial_timeout', '3s', 'Maximum time to connect to a broker.', { min: 10 }),
  ...clientTls('tls', 'Connect to the brokers with TLS.', 'the brokers', 'address'),
  string('sasl_mechanism', '', 'SASL mechanism. Empty: none.', {
    values: ['', 'plain', 'scram-sha-256', 'scram-sha-512'],
    unsupported: { 'aws-msk-iam': 'the Kafka client of Halley has no AWS MSK IAM; use scram-sha-512' },
  }),
  string('sasl_user', '', 'User of SASL.'),
  string('sasl_password', '', 'Password of SASL.', { secret: true }),
]

const redisStream = [
  oneOrMore(
    'address',
    '',
    'Address of the one Redis, in the forms of `engine.redis.address`. Required, unless it is a cluster or has sentinels.',
    { secret: true },
  ),
  ...redisConnection,
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

const kafka = [
  ...kafkaConnection,
  strings('topics', 'Topics. Required. A missing one is waited for.'),
  string('consumer_group', '', 'Consumer group. A new one begins at the earliest record. Required.'),
  int(
    'max_poll_records',
    100,
    'Accepted for configurations of Centrifugo, without effect: `fetch_max_bytes` bounds a fetch, and `partition_queue_max_size` what waits.',
    { min: 1 },
  ),
  int('fetch_max_bytes', 52_428_800, 'Limit of a fetch, and of all records that wait in the gateway.', {
    unit: 'bytes',
    min: 1024,
  }),
  duration('fetch_max_wait', '500ms', 'Time that a broker waits for records before it answers.'),
  bool('fetch_read_uncommitted', 'Also run records of transactions that are not committed.'),
  int(
    'partition_queue_max_size',
    1000,
    'A partition with that many waiting records is paused. -1: it is paused as long as any record waits.',
    { min: -1 },
  ),
  string('assume_role_arn', '', 'For `aws-msk-iam`, which is not supported: must be empty.'),
  string(
    'instance_id',
    '',
    'Static member of the group, another one on each node: a restart causes no rebalance. Empty: none.',
  ),
  string(
    'method_header',
    'centrifugo-method',
    'Header with the method. Without it the value is an envelope.',
  ),
  ...dataMode('header', 'headers'),
]

const rabbitmq = [
  strings('urls', 'Servers, `amqp://user:password@host:5672/vhost` or `amqps://`, tried in turn. Required.', {
    secret: true,
  }),
  ...clientTls('tls', 'TLS options for `amqps://` addresses.', 'RabbitMQ', 'address'),
  strings('queues', 'Queues. Required. A missing one is waited for, unless `declare` is on.'),
  int(
    'prefetch',
    100,
    'Messages of a queue that the gateway holds unacknowledged. Times their size it is the memory they need.',
    { min: 1, max: 65_535 },
  ),
  int(
    'concurrency',
    1,
    'Messages of a queue that are in work at the same time. With 1 their order is kept.',
    { min: 1, max: 1024 },
  ),
  string('method_header', 'centrifugo-method', 'Header with the method. Without it the body is an envelope.'),
  bool(
    'declare',
    'Declare the queues: durable, and with `concurrency` 1 for one consumer at a time, which keeps the order over several nodes.',
  ),
  objects('bindings', 'With `declare`: bindings of the queues, as `{queue, exchange, routing_key}`.', {
    queue: { type: 'string', minLength: 1 },
    exchange: { type: 'string', minLength: 1 },
    routing_key: { type: 'string', default: '' },
  }),
  string(
    'on_malformed',
    'ack',
    'What a skipped message gets: `ack`, or `reject` = to the dead-letter exchange of its queue.',
    { values: ['ack', 'reject'] },
  ),
  ...dataMode('header', 'headers'),
]

const postgresql = [
  string(
    'dsn',
    '',
    'Where the database is: a `postgres://` URL, or `host=... dbname=...`. `pool_max_conns` in it: connections, 4 unless stated. Required.',
    { secret: true },
  ),
  string(
    'outbox_table_name',
    '',
    'Name of the table, used in SQL as it is: `schema.table` is possible. Required.',
  ),
  int('num_partitions', 1, 'Partitions: 0 up to this number, less one.', { min: 1, max: 10_000 }),
  int('partition_select_limit', 100, 'Rows of a transaction.', { min: 1, max: 100_000 }),
  duration('partition_poll_interval', '300ms', 'Time until an empty partition is looked at again.'),
  string(
    'partition_notification_channel',
    '',
    'Channel of LISTEN: a notification with the number of a partition wakes it. Empty: off.',
  ),
  string(
    'partition_notification_dsn',
    '',
    'Direct connection for LISTEN, where `dsn` is a transaction pooler. Empty: `dsn`.',
    { secret: true },
  ),
  ...clientTls(
    'tls',
    'Use TLS with the settings below. Without them `sslmode` of the DSN counts.',
    'the server',
    'address',
  ),
  bool(
    'use_try_lock',
    'Do not wait for the lock of a partition that another node works on: look again after the interval.',
  ),
]

const natsJetstream = [
  ...natsConnection,
  string('stream_name', '', 'Name of the stream. Required.'),
  string('durable_consumer_name', '', 'Name of the durable consumer, which the nodes share. Required.'),
  strings('subjects', 'Subjects of the stream. Empty: all. More than one needs NATS 2.10.'),
  string(
    'deliver_policy',
    'new',
    'Where a new durable consumer begins: at messages from now on, or at all of the stream.',
    { values: ['new', 'all'] },
  ),
  int('max_ack_pending', 100, 'Messages without acknowledgement, of all nodes.', { min: 1, max: 1_000_000 }),
  bool(
    'use_existing_consumer',
    'The durable consumer is there, and stays as it is: the three options above are ignored.',
  ),
  string(
    'method_header',
    'centrifugo-method',
    'Header with the method. Without it the payload is an envelope.',
  ),
  ...dataMode('header', 'headers'),
]

const awsSqs = [
  strings('queues', 'URLs of the queues. Required.'),
  string('region', '', 'Region. Empty: that of the environment or of the profile.'),
  bool('sns_envelope', 'Messages come from SNS: the payload is the text in `Message`.'),
  int('max_number_of_messages', 10, 'Messages of a request.', { min: 1, max: 10 }),
  duration('wait_time_time', '20s', 'Time that a request waits for messages.', { min: 0, max: 20_000 }),
  duration('visibility_timeout', '30s', 'Time until a message that was not finished comes again.', {
    min: 1000,
    max: 43_200_000,
  }),
  int(
    'max_concurrency',
    1,
    'Messages of a queue that are in work at the same time. Those of a group never are.',
    { min: 1, max: 10 },
  ),
  string(
    'credentials_profile',
    '',
    'Profile of the shared configuration files. Empty: the usual chain of credentials.',
  ),
  string('assume_role_arn', '', 'Not supported: name a `credentials_profile` with `role_arn`.'),
  string('localstack_endpoint', '', 'URL of another service than that of AWS, for tests.'),
  string(
    'method_attribute',
    'centrifugo-method',
    'Attribute with the method. Without it the payload is an envelope.',
  ),
  ...dataMode('attribute', 'attributes of the message'),
]

/** Type -> rows of its block. */
export const consumerTypes = {
  aws_sqs: awsSqs,
  nats_jetstream: natsJetstream,
  postgresql,
  redis_stream: redisStream,
  kafka,
  rabbitmq,
}

/** Types of Centrifugo that Halley does not support yet: a warning, and the consumer does not run. */
export const unsupportedConsumerTypes = ['azure_service_bus', 'google_pub_sub']

/** Of each item of `consumers`. */
export const consumerMembers = newStart([
  bool('enabled', 'Run it. The options of its type are checked only then.'),
  string(
    'type',
    '',
    `Type: ${Object.keys(consumerTypes)
      .map(type => `\`${type}\``)
      .join(', ')}. Required.`,
  ),
  bool(
    'own_origin',
    'Take messages that this cluster has republished, too. Off: they are skipped, so a queue that leads back makes no loop. Halley only.',
  ),
  ...under('aws_sqs', awsSqs),
  ...under('nats_jetstream', natsJetstream),
  ...under('postgresql', postgresql),
  ...under('redis_stream', redisStream),
  ...under('kafka', kafka),
  ...under('rabbitmq', rabbitmq),
])

export const consumerOptions = newStart([
  named(
    'consumers',
    'Consumers: objects with a `name` (two or more of `a-zA-Z0-9_`), `enabled`, `type` and a block named like the type.',
    consumerMembers,
  ),
])
