import { COMMAND } from '../../base/version.js'
import { bool, duration, int, newStart, newWorkers, PEM, string, strings } from './make.js'

/**
 * @template {string} B
 * @param {B} block `http_server.tls` or `http_server.internal_tls`
 * @param {string} on doc of its switch
 * @param {string} port that it is about
 * @param {string} driver what client certificates need
 */
const tlsOptions = (block, on, port, driver) => [
  bool(`${block}.enabled`, on, false, { change: 'start' }),
  string(`${block}.cert_pem`, '', `Certificate of ${port}, and the intermediate ones: ${PEM}`, {
    change: 'live',
    loadedOnce: true,
  }),
  string(`${block}.key_pem`, '', `Key of the certificate: ${PEM}`, {
    secret: true,
    change: 'live',
    loadedOnce: true,
  }),
  string(
    `${block}.client_ca_pem`,
    '',
    `CA certificates that verify client certificates, which are then required: ${PEM} Empty: no client certificates. ` +
      driver,
    { change: 'live', mounts: 'start' },
  ),
]

/** Processes, sockets, logs, engine, server API, endpoints. */
export const serverOptions = newWorkers([
  int(
    'workers',
    0,
    'Worker processes, all on the same port. 0: one per core, or per whole core of the CPU quota of the control group. Halley only.',
    { max: 1023, change: 'start' },
  ),
  duration(
    'worker.liveness_timeout',
    '5s',
    'Time after which a worker that neither reports nor uses the CPU is killed and replaced; one that uses the CPU gets six times as long. Time for which it waits for a core does not count. 0: never. Halley only.',
    { min: 0 },
  ),
  duration(
    'worker.start_timeout',
    '30s',
    'Time after which a worker that does not listen yet is killed and replaced. Time for which it waits for a core does not count. 0: never. Halley only.',
    { min: 0 },
  ),

  string('http_server.address', '', 'Address to listen on. Empty: all interfaces.', { change: 'start' }),
  int('http_server.port', 8000, 'Port to listen on.', { max: 65535, change: 'start' }),
  string(
    'http_server.internal_address',
    '',
    'Address of the internal port. Empty: that of `http_server.address`.',
    { change: 'start' },
  ),
  int(
    'http_server.internal_port',
    0,
    'Separate port for internal endpoints: server API, admin page, metrics and health. 0: they use `http_server.port`.',
    { max: 65535, change: 'start' },
  ),
  string(
    'http_server.driver',
    'auto',
    'Socket server: `uws` (uWebSockets.js), `node` (node:http with ws), or `auto` (uws if it loads, else node). Halley only.',
    { values: ['auto', 'uws', 'node'], change: 'start' },
  ),
  ...tlsOptions(
    'http_server.tls',
    'Serve HTTPS and WSS instead of HTTP and WS ([tls.md](tls.md)).',
    'the gateway',
    'Needs the driver `node`, which `auto` chooses then.',
  ),
  ...tlsOptions(
    'http_server.internal_tls',
    'Serve HTTPS on the internal port with the certificate below. Off: as `http_server.tls` says.',
    'the internal port',
    'The internal port then has the driver `node`.',
  ),

  string('log.level', 'info', 'Least severe level that is logged.', {
    values: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'none'],
    change: 'live',
  }),
  string('log.file', '', 'File to append the log to. Empty: standard output.', { change: 'start' }),

  string(
    'engine.type',
    'memory',
    'Where channel state is kept: `memory` (the primary process, one node) or `redis` (any number of nodes).',
    { values: ['memory', 'redis'], change: 'start' },
  ),
  int(
    'engine.memory.max_bytes',
    512 * 1024 * 1024,
    'Memory limit of the memory engine for history, positions and idempotency keys. At the limit those used least recently go, channels with subscribers last. On top come about 230 bytes for each channel with subscribers and 300 to 650 for each client in presence: `client.connection_limit` and `client.channel_limit` limit these. Halley only.',
    { unit: 'bytes', min: 1, change: 'start' },
  ),
  string(
    'engine.memory.snapshot_file',
    '',
    'File that keeps history, positions and idempotency keys of the memory engine from a clean end to the next start, so that clients recover. Remove it before a start if the gateway has run without this option since. Empty: none. Halley only.',
    { change: 'start' },
  ),

  bool('http_api.disabled', 'Disable the server API over HTTP.'),
  string('http_api.handler_prefix', '/api', 'Path of the server API.', { prefix: true }),
  string('http_api.key', '', 'Key that backends send with each API request. Empty: every request gets 401.', {
    secret: true,
    change: 'live',
  }),
  string(
    'http_api.previous_key',
    '',
    'Key before the last rotation, accepted beside `http_api.key`. Empty: none. Halley only.',
    { secret: true, change: 'live' },
  ),
  bool(
    'http_api.insecure',
    'Accept API requests without a key. Only behind a proxy that authenticates them.',
    false,
    { change: 'live' },
  ),
  string(
    'http_api.error_mode',
    '',
    'Empty: an error is HTTP 200 with an `error` object. `transport`: an error is an HTTP error status.',
    { values: ['', 'transport'], change: 'live' },
  ),

  bool('rpc.ping.enabled', 'Answer the RPC method `rpc.ping.method` with an empty result.', false, {
    change: 'live',
  }),
  string('rpc.ping.method', 'ping', 'Name of that method.', { change: 'live' }),

  bool(
    'health.enabled',
    'Serve the health endpoint: 200 if every worker listens and the engine is reachable.',
  ),
  string('health.handler_prefix', '/health', 'Path of the health endpoint.', { prefix: true }),

  bool('demo.enabled', 'Serve the demo page at `/`. On in the development profile. Halley only.'),

  string('node.name', '', 'Name of this node in `info`. Empty: `<hostname>_<port>`.', { change: 'start' }),
  duration('node.info_metrics_aggregate_interval', '60s', 'Time window of the metrics in `info`.'),

  duration(
    'overload.max_tick',
    '100ms',
    'Event-loop delay above which a worker refuses new connections with HTTP 503: when longer ones take 70 % of its time. With more workers than cores it is longer, by the workers for each core. 0: any delay. Halley only.',
    { min: 0 },
  ),
  int(
    'overload.max_memory',
    90,
    "Memory in use above which a worker refuses new connections with HTTP 503: of its heap's limit, or of the limit of its control group. 0: any. Halley only.",
    { unit: 'per cent', max: 100 },
  ),

  duration(
    'shutdown.timeout',
    '30s',
    'Maximum time of a clean shutdown, and of a worker that is being replaced.',
    { change: 'live' },
  ),
  duration(
    'shutdown.drain',
    '0s',
    'Time over which a worker that ends lets its clients go, so that they come back one after another; fewer than 1,000 clients a second take less. 0: a third of `shutdown.timeout`. Halley only.',
    { min: 0, change: 'live' },
  ),
])

/** The application's own code, see docs/hooks.md. */
export const hooksOptions = newWorkers([
  string(
    'hooks.module',
    '',
    "ES module with the application's handlers, loaded by each worker. A relative path in a file starts at the folder of the file. `hooks: ./hooks.js` is a short form. Halley only.",
    { file: true },
  ),
  duration(
    'hooks.timeout',
    '5s',
    'Time for the promise of a handler in the module; then the call has failed. 0: no limit. Halley only.',
    { min: 0 },
  ),
  int(
    'hooks.max_calls',
    10000,
    'Maximum calls of handlers and proxies that one worker waits for; further ones fail at once. Halley only.',
    { min: 1, change: 'live' },
  ),
  int(
    'hooks.max_call_bytes',
    67108864,
    'Maximum bytes of the events of the calls that one worker waits for; further calls fail at once. ' +
      'Also the limit for notices of ended sessions that wait for a slow handler. Halley only.',
    { unit: 'bytes', min: 65536, change: 'live' },
  ),
])

export const statsOptions = newWorkers([
  bool(
    'admin.enabled',
    `Serve the admin page, and \`${COMMAND} dashboard URL\`. Off while \`admin.password\` is empty.`,
    true,
  ),
  string('admin.password', '', 'Key to log in to the admin page.', {
    secret: true,
    change: 'live',
    mounts: 'workers',
  }),
  string(
    'admin.secret',
    '',
    'Secret that signs the tokens of logged-in admins. Empty: derived from the password. Must be the same on every node.',
    { secret: true, change: 'live' },
  ),
  string('admin.handler_prefix', '/admin', 'Path of the admin page.', { prefix: true }),

  bool('prometheus.enabled', 'Serve metrics of all workers in the Prometheus text format.'),
  string('prometheus.handler_prefix', '/metrics', 'Path of the metrics.', { prefix: true }),

  string(
    'stats.socket',
    'auto',
    `Unix socket for \`${COMMAND} dashboard\`: a path, \`auto\` (named by the port, in a folder of the current user) ` +
      'or `none`. Halley only.',
    { change: 'start' },
  ),
  string(
    'stats.csv.file',
    '',
    'CSV file to which a row of statistics is appended each second. Empty: none. Halley only.',
    { change: 'live' },
  ),
  int('stats.csv.max_bytes', 104857600, 'Size at which the CSV file is rotated. Halley only.', {
    unit: 'bytes',
    min: 65536,
    change: 'live',
  }),
  int('stats.csv.keep', 5, 'Number of rotated CSV files to keep. Halley only.', {
    max: 1000,
    change: 'live',
  }),

  bool(
    'gc.idle',
    'Return memory after a burst of connections: collect garbage once when the worker is idle again. Halley only.',
    true,
    { change: 'live' },
  ),
  duration(
    'gc.interval',
    '0s',
    'Interval of garbage collections in each worker, one worker after another. 0: only when V8 decides. Halley only.',
    { min: 0, change: 'live' },
  ),
])

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
