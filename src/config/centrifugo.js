// Keys of Centrifugo v6 that Halley does not support yet: accepted with a warning, or refused if they restrict what
// clients may do or see. `x.*`: everything below x.

import { unsupportedConsumerTypes } from './options/consumers.js'

/** Relative to a namespace. Refused where they are set. */
export const restrictingChannelOptions = [
  'client_publish_debounce_interval',
  'require_server_tags_filter',
  'subscribe_stream_proxy_enabled',
]

/** The same for all other keys: without them, more would be possible than the file says. */
export const restrictingOptions = [
  ...restrictingChannelOptions.map(path => `channel.without_namespace.${path}`),
  'client.rate_limit.*',
  'http_server.tls_autocert.*',
  'token_revoke.*',
  'user_block.*',
  'user_tokens_invalidate.*',
]

/** Relative to a namespace. */
export const unsupportedChannelOptions = [
  'map.*',
  'map_clients_presence_channel_prefix',
  'map_users_presence_channel_prefix',
  'shared_poll.*',
  'subscribe_stream_proxy_bidirectional',
  'subscribe_stream_proxy_name',
]

/** Relative to an item of `consumers`. */
export const unsupportedConsumerOptions = unsupportedConsumerTypes.map(type => `${type}.*`)

export const unsupportedOptions = [
  'admin.external',
  'admin.insecure',
  'admin.web_path',
  'admin.web_proxy_address',
  'broker.*',
  'channel.proxy.map_publish.*',
  'channel.proxy.map_remove.*',
  'channel.proxy.shared_poll_refresh.*',
  'channel.proxy.subscribe_stream.*',
  ...unsupportedChannelOptions.map(path => `channel.without_namespace.${path}`),
  'client.channel_position_max_time_lag',
  'debug.*',
  'dev.*',
  'enable_unreleased_features',
  'engine.redis.force_resp2',
  'engine.redis.history_use_lists',
  'engine.redis.presence_hash_field_ttl',
  'engine.redis.presence_user_mapping',
  'engine.redis.replica_client.*',
  'engine.redis.sentinel_client_name',
  'engine.redis.sentinel_tls.client_ca_pem',
  'engine.redis.tls.client_ca_pem',
  'graphite.*',
  'grpc_api.*',
  'http_api.external',
  'http_server.h2c_external',
  'http_server.http3.*',
  'http_server.internal_tls.insecure_skip_verify',
  'http_server.internal_tls.server_ca_pem',
  'http_server.internal_tls.server_name',
  'http_server.tls.insecure_skip_verify',
  'http_server.tls.server_ca_pem',
  'http_server.tls.server_name',
  'http_server.tls_external',
  'init.enabled',
  'init.handler_prefix',
  'map_broker.*',
  'opentelemetry.*',
  'pid_file',
  'presence_manager.*',
  'prometheus.instrument_http_handlers',
  'prometheus.native_histograms',
  'prometheus.recovered_publications_histogram',
  'shared_poll.*',
  'swagger.*',
  'uni_grpc.*',
  'uni_websocket.compression',
  'uni_websocket.compression_level',
  'uni_websocket.compression_min_size',
  'uni_websocket.disable_closing_handshake',
  'uni_websocket.read_buffer_size',
  'uni_websocket.use_write_buffer_pool',
  'uni_websocket.write_buffer_size',
  'uni_websocket.write_timeout',
  'usage_stats.*',
  'websocket.decompressed_message_size_limit',
  'websocket.read_buffer_size',
  'websocket.use_write_buffer_pool',
  'websocket.write_buffer_size',
  'websocket.write_timeout',
  'webtransport.*',
]
