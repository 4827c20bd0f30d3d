import { bool, duration, int, newStart, string, strings } from './make.js'

/** The lifecycle log (docs/lifecycle.md): off until one of its sinks is configured. */
export const lifecycleOptions = newStart([
  strings('lifecycle.events', 'Types of events in the lifecycle log. Empty: all. Halley only.', {
    values: ['connected', 'subscribed', 'unsubscribed', 'disconnected'],
  }),
  string(
    'lifecycle.file.path',
    '',
    'File to which the lifecycle log is appended, one JSON object a line. Empty: none. Halley only.',
  ),
  string(
    'lifecycle.webhook.url',
    '',
    'Address (http or https) to which the lifecycle log is posted in batches. Empty: none. Halley only.',
    { secret: true },
  ),
  string(
    'lifecycle.webhook.secret',
    '',
    'Key that signs the batches with HMAC-SHA256: `whsec_` and base64, or any text. Halley only.',
    { secret: true },
  ),
  int('lifecycle.webhook.batch_size', 100, 'Maximum events of a batch. Halley only.', {
    unit: 'events',
    min: 1,
    max: 10_000,
  }),
  duration(
    'lifecycle.webhook.timeout',
    '10s',
    'Time for the answer to a batch; then it is posted again. Halley only.',
  ),
  bool(
    'lifecycle.redis.stream',
    'Append the lifecycle log to a Redis stream, `<engine.redis.prefix>.lifecycle.stream`. Halley only.',
  ),
  int(
    'lifecycle.redis.max_length',
    1_000_000,
    'Length at which the oldest entries of the stream are removed, about. 0: never. Halley only.',
    { unit: 'entries' },
  ),
  string(
    'lifecycle.redis.address',
    '',
    'Redis of the lifecycle log, in a form of `engine.redis.address`, with its user, password and database; all else is as in `engine.redis`. Empty: the Redis of the engine. Halley only.',
    { secret: true },
  ),
  bool(
    'lifecycle.redis.takeover',
    'Also keep in Redis who is connected, so that another node logs the disconnects of a node that has died. No effect without Redis. Halley only.',
    true,
  ),
  duration(
    'lifecycle.redis.takeover_delay',
    '15s',
    'Time without a heartbeat after which a node counts as dead. The same on every node. Halley only.',
    { min: 2000 },
  ),
  int(
    'lifecycle.queue_max_bytes',
    16 * 1024 * 1024,
    'Memory for events that a sink cannot take yet, for each sink. Later events are dropped and counted. Halley only.',
    { unit: 'bytes', min: 65536 },
  ),
  int(
    'lifecycle.journal_max_bytes',
    256 * 1024 * 1024,
    'Memory of the journal of connected clients in the primary, about 270 bytes for a client with one subscription, 100 for each further one. Clients beyond it are counted, and get no disconnect if their worker dies. Halley only.',
    { unit: 'bytes', min: 65536 },
  ),
])
