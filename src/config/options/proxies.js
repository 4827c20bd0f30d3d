import {
  bool,
  clientTls,
  duration,
  int,
  live,
  map,
  named,
  objects,
  string,
  strings,
  withFields,
} from './make.js'

/** @param {string} enabled doc of the switch */
const tlsOptions = enabled => ({
  ...clientTls(enabled, 'the backend', 'endpoint'),
  client_ca_pem: string('For compatibility only: not used by clients.'),
})

export const proxyMembers = live({
  endpoint: string(
    'Address of the backend: `http://` or `https://`, used as written. Other values are the target of a gRPC proxy, ' +
      '`grpc://host:port` or `host:port`.',
  ),
  timeout: duration(
    '1s',
    'Maximum time of a call, including the wait for a connection and all retries. `0s`: 1s.',
    { min: 0, max: 3_600_000 },
  ),
  http_headers: strings("Names of the client's request headers to forward. Case-insensitive."),
  grpc_metadata: strings('For compatibility only: Halley has no one-way gRPC transport.'),
  emulated_headers: strings('Names of the headers to accept from `headers` of the connect request.'),
  binary_encoding: bool("Send the client's data as `b64data`, and `encoding` as `binary`."),
  include_connection_meta: bool(
    'Send the `meta` of the connection, from its token or its connect proxy. Not in connect.',
  ),
  http: {
    static_headers: map('Fixed request headers; those of clients replace them.', { secret: true }),
    status_to_code_transforms: objects(
      'Meaning of HTTP statuses other than 200: `{"status_code": 403, "to_disconnect": {"code": 4403, "reason": ' +
        '"forbidden"}}` or `{"status_code": 404, "to_error": {"code": 1404, "message": "unknown", "temporary": false}}`. ' +
        'The first match counts.',
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
    tls: tlsOptions(
      'Use the settings below. Without them `https://` verifies the backend with the CAs of Node.js.',
    ),
    max_connections: int(
      128,
      'Maximum connections of a worker to the backend; further calls wait for a free one. Halley only.',
      { min: 1, max: 65535 },
    ),
  },
  grpc: {
    tls: tlsOptions('Use TLS.'),
    credentials_key: string('Name of a metadata entry that is sent with each call.'),
    credentials_value: string('Value of that entry.', { secret: true }),
    compression: bool('Compress requests with gzip.'),
    static_metadata: map('Fixed metadata; those of clients replace them.', { secret: true }),
  },
  max_response_size: int(
    4194304,
    'Maximum size of an uncompressed response of the backend; a larger one is a failed call. Halley only.',
    { unit: 'bytes', min: 1024, max: 268435456 },
  ),
  retries: int(
    0,
    'Retries of a failed call within `timeout`. Never of publish, map_publish, map_remove and rpc, which may have taken effect. ' +
      'Halley only.',
    { max: 10 },
  ),
  breaker: {
    failures: int(
      10,
      'Consecutive calls that find the backend down (no connection, timeout, status 502, 503 or 504) after which ' +
        'calls fail immediately. 0: never. Halley only.',
      { max: 1000000 },
    ),
    interval: duration('1s', 'Time after which one call probes such a backend. Halley only.', {
      max: 3_600_000,
    }),
  },
})

/** Options of an unnamed block. */
const proxyBlock = withFields(proxyMembers, { block: true })

/** @param {string} doc of the switch */
const clientProxy = doc => ({ enabled: bool(doc), ...proxyBlock })

const rpcMembers = live({
  proxy_enabled: bool('Methods without a namespace go to the backend.'),
  proxy_name: string('An entry of `proxies`; `default` or empty: the block `rpc.proxy`.', {
    default: 'default',
  }),
})

export const proxyOptions = live({
  client: {
    proxy: {
      connect: clientProxy('Call the backend when a client connects without a token.'),
      refresh: clientProxy('Call the backend when a connection expires; clients no longer refresh.'),
      disconnected: clientProxy('Notify the backend when a client has disconnected. Halley only.'),
      unsubscribed: clientProxy(
        'Notify the backend when a subscription of a connected client has ended. Halley only.',
      ),
    },
  },
  channel: {
    proxy: {
      subscribe: proxyBlock,
      publish: proxyBlock,
      sub_refresh: proxyBlock,
      state: proxyBlock,
      map_publish: proxyBlock,
      map_remove: proxyBlock,
      shared_poll_refresh: proxyBlock,
      cache_empty: proxyBlock,
    },
  },
  rpc: {
    proxy: proxyBlock,
    without_namespace: rpcMembers,
    namespaces: named(
      'Namespaces of methods: objects with a `name` (two or more of `-a-zA-Z0-9_.`), `proxy_enabled` and `proxy_name`.',
      rpcMembers,
    ),
    namespace_boundary: string('Ends the namespace in the name of a method. Empty: off.', { default: ':' }),
  },
  proxies: named(
    'Proxies by name: objects with a `name` (two or more of `-a-zA-Z0-9_.`, not `default`) and the proxy options. ' +
      'Each needs an `endpoint`.',
    proxyMembers,
  ),
})
