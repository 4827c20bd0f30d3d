import { COMMAND } from '../../base/version.js'
import { bool, duration, int, newStart, newWorkers, PEM, string, strings } from './make.js'

/**
 * @param {string} on doc of `enabled`
 * @param {string} port as in the docs
 * @param {string} driver rule for client certificates
 */
const tlsOptions = (on, port, driver) => ({
  enabled: bool(on, { change: 'start' }),
  cert_pem: string(`Certificate of ${port}, and the intermediate ones: ${PEM}`, {
    change: 'live',
    loadedOnce: true,
  }),
  key_pem: string(`Key of the certificate: ${PEM}`, { secret: true, change: 'live', loadedOnce: true }),
  client_ca_pem: string(
    `CA certificates that verify client certificates, which are then required: ${PEM} Empty: no client certificates. ` +
      driver,
    { change: 'live', mounts: 'start' },
  ),
})

export const serverOptions = newWorkers({
  workers: int(
    0,
    'Worker processes, all on the same port. 0: one per core, or per whole core of the CPU quota of the control group. Halley only.',
    { max: 1023, change: 'start' },
  ),
  worker: {
    liveness_timeout: duration(
      '5s',
      'Time after which a worker that neither reports nor uses the CPU is killed and replaced; six times as long if it uses the CPU. Time waiting for a core does not count. 0: never. Halley only.',
      { min: 0 },
    ),
    start_timeout: duration(
      '30s',
      'Time after which a starting worker that does not listen is killed and replaced. Time waiting for a core does not count. 0: never. Halley only.',
      { min: 0 },
    ),
  },
  http_server: {
    address: string('Address to listen on. Empty: all interfaces.', { change: 'start' }),
    port: int(8000, 'Port to listen on.', { max: 65535, change: 'start' }),
    internal_address: string('Address of the internal port. Empty: the one of `http_server.address`.', {
      change: 'start',
    }),
    internal_port: int(
      0,
      'Separate port for internal endpoints: server API, admin page, metrics and health. 0: they use `http_server.port`.',
      { max: 65535, change: 'start' },
    ),
    driver: string(
      'Socket server: `uws` (uWebSockets.js), `node` (node:http with ws), or `auto` (uws if it loads, else node). Halley only.',
      { default: 'auto', values: ['auto', 'uws', 'node'], change: 'start' },
    ),
    tls: tlsOptions(
      'Serve HTTPS and WSS instead of HTTP and WS ([tls.md](tls.md)).',
      'the gateway',
      'Needs the driver `node`, which `auto` then selects.',
    ),
    internal_tls: tlsOptions(
      'Serve HTTPS on the internal port with the certificate below. Off: that of `http_server.tls`.',
      'the internal port',
      'The internal port then has the driver `node`.',
    ),
  },
  log: {
    level: string('Minimum log level.', {
      default: 'info',
      values: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'none'],
      change: 'live',
    }),
    file: string('File to append the log to. Empty: standard output.', { change: 'start' }),
  },
  engine: {
    type: string(
      'Where channel state is kept: `memory` (the primary process, one node) or `redis` (any number of nodes).',
      { default: 'memory', values: ['memory', 'redis'], change: 'start' },
    ),
    memory: {
      max_bytes: int(
        512 * 1024 * 1024,
        'Memory limit of the memory engine for history, positions and idempotency keys. At the limit the least recently used ones are dropped, channels with subscribers last. Not included are about 230 bytes for each channel with subscribers and 300 to 650 for each client in presence: `client.connection_limit` and `client.channel_limit` limit these. Halley only.',
        { unit: 'bytes', min: 1, change: 'start' },
      ),
      snapshot_file: string(
        'File in which the memory engine saves history, positions and idempotency keys at a clean shutdown and restores them at the next start, so that clients recover. The file with `.channels` appended has the occupied channels (docs/access.md). Remove both before a start if the gateway has run without this option since. Empty: none. Halley only.',
        { change: 'start' },
      ),
      channel_state: {
        vacated_event_delay: duration(
          '5s',
          'Time after the last subscriber left until a channel is reported as vacated, unless a subscriber comes. Halley only.',
          { min: 0, max: 3_600_000, change: 'start' },
        ),
      },
    },
  },
  http_api: {
    disabled: bool('Disable the server API over HTTP.'),
    handler_prefix: string('Path of the server API.', { default: '/api', prefix: true }),
    key: string('Key that backends send with each API request. Empty: every request gets 401.', {
      secret: true,
      change: 'live',
    }),
    previous_key: string(
      'Key before the last rotation, accepted in addition to `http_api.key`. Empty: none. Halley only.',
      { secret: true, change: 'live' },
    ),
    insecure: bool('Accept API requests without a key. Only behind a proxy that authenticates them.', {
      change: 'live',
    }),
    error_mode: string(
      'Empty: an error is HTTP 200 with an `error` object. `transport`: an error is an HTTP error status.',
      { values: ['', 'transport'], change: 'live' },
    ),
  },
  rpc: {
    ping: {
      enabled: bool('Answer the RPC method `rpc.ping.method` with an empty result.', { change: 'live' }),
      method: string('Name of the RPC method that is answered.', { default: 'ping', change: 'live' }),
    },
  },
  health: {
    enabled: bool('Serve the health endpoint: 200 if every worker listens and the engine is reachable.'),
    handler_prefix: string('Path of the health endpoint.', { default: '/health', prefix: true }),
  },
  demo: {
    enabled: bool('Serve the demo page at `/`. On in the development profile. Halley only.'),
  },
  node: {
    name: string('Name of this node in `info`. Empty: `<hostname>_<port>`.', { change: 'start' }),
    info_metrics_aggregate_interval: duration('60s', 'Time window of the metrics in `info`.'),
  },
  overload: {
    max_tick: duration(
      '100ms',
      'Event-loop delay above which a worker refuses new connections with HTTP 503, if longer delays take 70 % of its time. Multiplied by the number of workers per core if there are more workers than cores. 0: no limit. Halley only.',
      { min: 0 },
    ),
    max_memory: int(
      90,
      'Memory usage above which a worker refuses new connections with HTTP 503, in per cent of its heap limit or of the limit of its control group. 0: no limit. Halley only.',
      { unit: 'per cent', max: 100 },
    ),
  },
  shutdown: {
    timeout: duration('30s', 'Maximum time of a clean shutdown, and of a worker that is being replaced.', {
      change: 'live',
    }),
    drain: duration(
      '0s',
      'Time over which an exiting worker disconnects its clients, so that they do not all reconnect at once; shorter if that would be fewer than 1,000 clients a second. 0: a third of `shutdown.timeout`. Halley only.',
      { min: 0, change: 'live' },
    ),
  },
})

/** Application code, see docs/hooks.md. */
export const hooksOptions = newWorkers({
  hooks: {
    module: string(
      "ES module with the application's handlers, loaded by each worker. A relative path in a file starts at the folder of the file. `hooks: ./hooks.js` is a short form. Halley only.",
      { file: true },
    ),
    timeout: duration(
      '5s',
      'Timeout for the promise of a handler in the module; after it the call fails. 0: no limit. Halley only.',
      { min: 0 },
    ),
    max_calls: int(
      10000,
      'Maximum pending calls of handlers and proxies in one worker; further calls fail immediately. Halley only.',
      { min: 1, change: 'live' },
    ),
    max_call_bytes: int(
      67108864,
      'Maximum bytes of the events of pending calls in one worker; further calls fail immediately. ' +
        'Also the limit for queued notices of ended sessions. Halley only.',
      { unit: 'bytes', min: 65536, change: 'live' },
    ),
  },
})

export const statsOptions = newWorkers({
  admin: {
    enabled: bool(
      `Serve the admin page, and \`${COMMAND} dashboard URL\`. Off while \`admin.password\` is empty.`,
      { default: true },
    ),
    password: string('Key to log in to the admin page.', { secret: true, change: 'live', mounts: 'workers' }),
    secret: string(
      'Secret that signs the tokens of logged-in admins. Empty: derived from the password. Must be the same on every node.',
      { secret: true, change: 'live' },
    ),
    handler_prefix: string('Path of the admin page.', { default: '/admin', prefix: true }),
  },
  prometheus: {
    enabled: bool('Serve metrics of all workers in the Prometheus text format.'),
    handler_prefix: string('Path of the metrics.', { default: '/metrics', prefix: true }),
  },
  stats: {
    socket: string(
      `Unix socket for \`${COMMAND} dashboard\`: a path, \`auto\` (named by the port, in a folder of the current user) ` +
        'or `none`. Halley only.',
      { default: 'auto', change: 'start' },
    ),
    csv: {
      file: string(
        'CSV file to which a row of statistics is appended each second. Empty: none. Halley only.',
        { change: 'live' },
      ),
      max_bytes: int(104857600, 'Size at which the CSV file is rotated. Halley only.', {
        unit: 'bytes',
        min: 65536,
        change: 'live',
      }),
      keep: int(5, 'Number of rotated CSV files to keep. Halley only.', {
        max: 1000,
        change: 'live',
      }),
    },
  },
  gc: {
    idle: bool(
      'Return memory after a burst of connections: collect garbage once when the worker is idle again. Halley only.',
      { default: true, change: 'live' },
    ),
    interval: duration(
      '0s',
      'Interval of garbage collections in each worker, one worker after another. 0: only when V8 decides. Halley only.',
      { min: 0, change: 'live' },
    ),
  },
})

/** The lifecycle log (docs/lifecycle.md): off unless a sink is configured. */
export const lifecycleOptions = newStart({
  lifecycle: {
    events: strings('Types of events in the lifecycle log. Empty: all. Halley only.', {
      values: ['connected', 'subscribed', 'unsubscribed', 'disconnected', 'occupied', 'vacated'],
    }),
    file: {
      path: string(
        'File to append the lifecycle log to, one JSON object per line. Empty: none. Halley only.',
      ),
    },
    webhook: {
      url: string(
        'Address (http or https) to which the lifecycle log is posted in batches. Empty: none. Halley only.',
        { secret: true },
      ),
      secret: string(
        'Key that signs the batches with HMAC-SHA256: `whsec_` and base64, or any text. Halley only.',
        { secret: true },
      ),
      batch_size: int(100, 'Maximum events of a batch. Halley only.', {
        unit: 'events',
        min: 1,
        max: 10_000,
      }),
      timeout: duration(
        '10s',
        'Timeout for the response to a batch, after which it is retried. Halley only.',
      ),
    },
    redis: {
      stream: bool(
        'Append the lifecycle log to a Redis stream, `<engine.redis.prefix>.lifecycle.stream`. Halley only.',
      ),
      max_length: int(
        1_000_000,
        'Approximate length at which the oldest entries of the stream are removed. 0: never. Halley only.',
        { unit: 'entries' },
      ),
      address: string(
        'Redis of the lifecycle log, in a form of `engine.redis.address`, with its user, password and database; other options are those of `engine.redis`. Empty: the Redis of the engine. Halley only.',
        { secret: true },
      ),
      takeover: bool(
        'Also keep the connected clients in Redis, so that another node logs the disconnects of a dead node. No effect without Redis. Halley only.',
        { default: true },
      ),
      takeover_delay: duration(
        '15s',
        'Time without a heartbeat after which a node counts as dead. The same on every node. Halley only.',
        { min: 2000 },
      ),
    },
    queue_max_bytes: int(
      16 * 1024 * 1024,
      'Maximum size of the queue of each sink. Later events are dropped and counted. Halley only.',
      { unit: 'bytes', min: 65536 },
    ),
    journal_max_bytes: int(
      256 * 1024 * 1024,
      'Memory of the journal of connected clients in the primary, about 270 bytes for a client with one subscription, 100 for each further one. Further clients are counted, but get no disconnect if their worker dies. Halley only.',
      { unit: 'bytes', min: 65536 },
    ),
  },
})
