import { bool, clientTls, duration, int, live, map, named, objects, string, strings, under } from './make.js'

/**
 * @template {string} B
 * @param {B} block `http.tls` or `grpc.tls`
 * @param {string} enabled its doc
 */
const tlsOptions = (block, enabled) => [
  ...clientTls(block, enabled, 'the backend', 'endpoint'),
  string(`${block}.client_ca_pem`, '', 'For compatibility only: a client has no use for it.'),
]

/** Of every proxy. Paths are relative to its block, or to its entry in `proxies`. */
export const proxyMembers = live([
  string(
    'endpoint',
    '',
    'Where the backend is: `http://` or `https://`, used as written. Everything else is the target of a gRPC proxy, ' +
      '`grpc://host:port` or `host:port`.',
  ),
  duration(
    'timeout',
    '1s',
    'Maximum time of a call, with the wait for a connection and all retries. `0s`: 1s.',
    { min: 0, max: 3_600_000 },
  ),
  strings(
    'http_headers',
    "Names of the client's request headers to forward. Upper and lower case are equal.",
  ),
  strings('grpc_metadata', 'For compatibility only: Halley has no one-way gRPC transport.'),
  strings('emulated_headers', 'Names of the headers to accept from `headers` of the connect request.'),
  bool('binary_encoding', "Send the client's data as `b64data`, and `encoding` as `binary`."),
  bool(
    'include_connection_meta',
    'Send the `meta` of the connection, from its token or its connect proxy. Not in connect.',
  ),
  map('http.static_headers', 'Fixed request headers; those of clients replace them.', { secret: true }),
  objects(
    'http.status_to_code_transforms',
    'What an HTTP status other than 200 means: `{"status_code": 403, "to_disconnect": {"code": 4403, "reason": ' +
      '"forbidden"}}` or `{"status_code": 404, "to_error": {"code": 1404, "message": "unknown", "temporary": false}}`. ' +
      'The first one for a status counts.',
    {
      status_code: { type: 'integer', minimum: 100, maximum: 599 },
      to_error: {
        type: 'object',
        default: {},
        properties: {
          code: { type: 'integer', minimum: 0, maximum: 4294967295, default: 0 },
          message: { type: 'string', default: '' },
          temporary: { type: 'boolean', default: false },
        },
      },
      to_disconnect: {
        type: 'object',
        default: {},
        properties: {
          code: { type: 'integer', minimum: 0, maximum: 4999, default: 0 },
          reason: { type: 'string', default: '' },
        },
      },
    },
  ),
  ...tlsOptions(
    'http.tls',
    'Use the settings below. Without them `https://` verifies the backend with the CAs of Node.js.',
  ),
  int(
    'http.max_connections',
    128,
    'Maximum connections of a worker to the backend; more calls wait for a free one. Halley only.',
    { min: 1, max: 65535 },
  ),
  ...tlsOptions('grpc.tls', 'Use TLS.'),
  string('grpc.credentials_key', '', 'Name of a metadata entry that is sent with each call.'),
  string('grpc.credentials_value', '', 'Value of that entry.', { secret: true }),
  bool('grpc.compression', 'Compress requests with gzip.'),
  map('grpc.static_metadata', 'Fixed metadata; those of clients replace them.', { secret: true }),
  int(
    'max_response_size',
    4194304,
    'Maximum answer of the backend, unpacked; a larger one is a failed call. Halley only.',
    { unit: 'bytes', min: 1024, max: 268435456 },
  ),
  int(
    'retries',
    0,
    'Repeats of a failed call within `timeout`. Never of publish and rpc, which may have taken effect. Halley only.',
    { max: 10 },
  ),
  int(
    'breaker.failures',
    10,
    'Calls in a row that find the backend down (no connection, no answer in time, status 502, 503 or 504) before ' +
      'calls fail at once. 0: never. Halley only.',
    { max: 1000000 },
  ),
  duration('breaker.interval', '1s', 'Time after which one call tries such a backend again. Halley only.', {
    max: 3_600_000,
  }),
])

/**
 * @template {string} B
 * @param {B} block
 */
const proxyBlock = block => under(block, proxyMembers, { block })

/**
 * @template {string} E
 * @param {E} event
 * @param {string} doc
 */
const clientProxy = (event, doc) => [
  bool(`client.proxy.${event}.enabled`, doc),
  ...proxyBlock(`client.proxy.${event}`),
]

/** Of an rpc namespace, and of the methods without one. */
const rpcMembers = live([
  bool('proxy_enabled', 'Methods without a namespace go to the backend.'),
  string('proxy_name', 'default', 'An entry of `proxies`; `default` or empty: the block `rpc.proxy`.'),
])

export const proxyOptions = live([
  ...clientProxy('connect', 'Ask the backend when a client connects without a token.'),
  ...clientProxy('refresh', 'Ask the backend when a connection expires; clients no longer refresh.'),
  ...clientProxy('disconnected', 'Tell the backend when a client has gone. Halley only.'),
  ...clientProxy(
    'unsubscribed',
    'Tell the backend when a subscription has ended and its client is still there. Halley only.',
  ),
  ...proxyBlock('channel.proxy.subscribe'),
  ...proxyBlock('channel.proxy.publish'),
  ...proxyBlock('channel.proxy.sub_refresh'),
  ...proxyBlock('rpc.proxy'),
  ...under('rpc.without_namespace', rpcMembers),
  named(
    'rpc.namespaces',
    'Namespaces of methods: objects with a `name` (two or more of `-a-zA-Z0-9_.`), `proxy_enabled` and `proxy_name`.',
    rpcMembers,
  ),
  string('rpc.namespace_boundary', ':', 'Ends the namespace in the name of a method. Empty: off.'),
  named(
    'proxies',
    'Proxies by name: objects with a `name` (two or more of `-a-zA-Z0-9_.`, not `default`) and the proxy options. ' +
      'Each needs an `endpoint`.',
    proxyMembers,
  ),
])
