// Keys of Centrifugo v6 that Halley does not support, with an alternative (docs/centrifugo.md): accepted with a
// warning, or refused if they restrict clients. `x.*`: all keys below x.

import { unsupportedConsumerTypes } from './options/consumers.js'

/** @param {Readonly<Record<string, string>>} keys relative to a namespace */
const withoutNamespace = keys =>
  Object.fromEntries(
    Object.entries(keys).map(([key, instead]) => [`channel.without_namespace.${key}`, instead]),
  )

/** Refused. Relative to a namespace. */
const restrictingOfChannel = {
  client_publish_debounce_interval: 'a `publish` hook',
  subscribe_stream_proxy_enabled: '`subscribe` proxy or hook, and the server API',
}

/** Refused: without them, clients could do more than configured. */
export const restricting = {
  ...withoutNamespace(restrictingOfChannel),
  'client.rate_limit.client_command.disconnect_on_accounted_limit':
    '`client.rate_limit.client_command.total`',
  'client.rate_limit.ip_connect.*': '`client.connection_rate_limit`, or limits of a reverse proxy',
  'http_server.tls_autocert.*': 'an ACME client, or a reverse proxy with one',
}

/** Relative to a namespace. */
const unsupportedOfChannel = {
  subscribe_stream_proxy_bidirectional: '`subscribe` proxy or hook, and the server API',
  subscribe_stream_proxy_name: '`subscribe` proxy or hook, and the server API',
}

/** @type {Readonly<Record<string, string>>} */
export const unsupported = {
  'admin.external': '`http_server.internal_port` separates clients from the rest',
  'admin.insecure': 'set `admin.password`',
  'admin.web_path': "Halley's own admin page",
  'admin.web_proxy_address': "Halley's own admin page",
  'broker.*': '`engine.type`: memory or redis',
  'channel.proxy.subscribe_stream.*': '`subscribe` proxy or hook, and the server API',
  ...withoutNamespace(unsupportedOfChannel),
  'client.channel_position_max_time_lag': '`client.channel_position_check_delay`',
  'debug.*': '`node --cpu-prof`, `npx halley-gateway dashboard`',
  'dev.*': '`npm start` without a configuration is the development profile',
  enable_unreleased_features: '-',
  'engine.redis.force_resp2': 'set by the driver',
  'engine.redis.history_use_lists': 'history is stored in Redis streams, presence has one layout',
  'engine.redis.presence_hash_field_ttl': 'history is stored in Redis streams, presence has one layout',
  'engine.redis.presence_user_mapping': 'history is stored in Redis streams, presence has one layout',
  'engine.redis.replica_client.*': 'reads go to the master',
  'engine.redis.sentinel_client_name': '`engine.redis.client_name`',
  'engine.redis.sentinel_tls.client_ca_pem': '`engine.redis.sentinel_tls.server_ca_pem`',
  'engine.redis.tls.client_ca_pem': '`engine.redis.tls.server_ca_pem`',
  'graphite.*': '`prometheus.enabled`, or the [CSV file](csv.md)',
  'grpc_api.*': 'the [server API](api.md) over HTTP',
  'http_api.external': '`http_server.internal_port` separates clients from the rest',
  'http_server.h2c_external': 'a reverse proxy: [operations.md](operations.md)',
  'http_server.http3.*': 'a reverse proxy: [operations.md](operations.md)',
  'http_server.internal_tls.insecure_skip_verify': 'a reverse proxy: [operations.md](operations.md)',
  'http_server.internal_tls.server_ca_pem': 'a reverse proxy: [operations.md](operations.md)',
  'http_server.internal_tls.server_name': 'a reverse proxy: [operations.md](operations.md)',
  'http_server.tls.insecure_skip_verify': 'a reverse proxy: [operations.md](operations.md)',
  'http_server.tls.server_ca_pem': 'a reverse proxy: [operations.md](operations.md)',
  'http_server.tls.server_name': 'a reverse proxy: [operations.md](operations.md)',
  'http_server.tls_external': '`http_server.internal_port` separates clients from the rest',
  'init.enabled': 'not needed: clients connect directly',
  'init.handler_prefix': 'not needed: clients connect directly',
  'map_broker.postgres.*': '`engine.type`: memory or redis',
  'map_broker.redis.*': '`engine.redis`',
  'opentelemetry.*': '`prometheus.enabled`',
  pid_file: 'the service manager tracks the process id',
  'presence_manager.*': '`engine.type`: memory or redis',
  'prometheus.instrument_http_handlers': 'see [metrics.md](metrics.md)',
  'prometheus.native_histograms': 'see [metrics.md](metrics.md)',
  'prometheus.recovered_publications_histogram': 'see [metrics.md](metrics.md)',
  'swagger.*': '[openapi.yaml](openapi.yaml)',
  'uni_grpc.*': 'one-way SSE or HTTP streaming',
  'uni_websocket.compression': '`websocket.compression` for two-way clients',
  'uni_websocket.compression_level': '`websocket.compression` for two-way clients',
  'uni_websocket.compression_min_size': '`websocket.compression` for two-way clients',
  'uni_websocket.disable_closing_handshake': 'set by the socket server',
  'uni_websocket.read_buffer_size': 'set by the socket server',
  'uni_websocket.use_write_buffer_pool': 'set by the socket server',
  'uni_websocket.write_buffer_size': 'set by the socket server',
  'uni_websocket.write_timeout': 'set by the socket server',
  'usage_stats.*': 'no usage statistics are sent',
  'websocket.decompressed_message_size_limit': 'set by the socket server',
  'websocket.read_buffer_size': 'set by the socket server',
  'websocket.use_write_buffer_pool': 'set by the socket server',
  'websocket.write_buffer_size': 'set by the socket server',
  'websocket.write_timeout': 'set by the socket server',
  'webtransport.*': 'WebSocket',
}

export const restrictingChannelOptions = Object.keys(restrictingOfChannel)
export const restrictingOptions = Object.keys(restricting)
export const unsupportedChannelOptions = Object.keys(unsupportedOfChannel)
export const unsupportedOptions = Object.keys(unsupported)
export const unsupportedConsumerOptions = unsupportedConsumerTypes.map(type => `${type}.*`)
