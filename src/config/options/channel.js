import { bool, duration, int, live, named, string, strings } from './make.js'

/** 100 years, in ms: effectively unlimited, and far below the largest exact integer. */
const TTL_MAX = 100 * 365 * 86400 * 1000

const FORMATS = /** @type {const} */ (['', 'json', 'json_object', 'binary'])

/** Limits of page sizes. */
const PAGE = { min: 1, max: 100_000 }

/** Doc of the option that selects a proxy. @param {string} event */
const proxyName = event =>
  `An entry of \`proxies\`; \`default\` or empty: the block \`channel.proxy.${event}\`.`

/** Options of each entry of `channel.namespaces` and of `channel.without_namespace`. */
export const channelOptions = live({
  presence: bool('List subscribers in presence.'),
  join_leave: bool('Produce join and leave events.'),
  force_push_join_leave: bool('Send join and leave events to every subscriber, even without a request.'),
  history_size: int(0, 'Publications kept for each channel. History is on when size and ttl are above 0.', {
    max: 2147483647,
  }),
  history_ttl: duration('0s', 'Time that history is kept after the last publication. Whole seconds.', {
    min: 0,
    max: TTL_MAX,
  }),
  history_meta_ttl: duration(
    '0s',
    'Time that offset and epoch are kept after their last use. 0: `channel.history_meta_ttl`.',
    { min: 0, max: TTL_MAX },
  ),
  force_positioning: bool('Track the position of every subscription to detect missed publications.'),
  allow_positioning: bool('Track the position of subscriptions that request it.'),
  force_recovery: bool('Recover missed publications for every subscription. Needs history.'),
  allow_recovery: bool('Recover missed publications for subscriptions that request it. Needs history.'),
  force_recovery_mode: string(
    'Empty or `stream`: recover all missed publications. `cache`: recover only the newest one.',
    { values: ['', 'stream', 'cache'] },
  ),
  auto_cache_recover: bool(
    'Recover the newest publication on every subscribe. Needs force_recovery and force_recovery_mode `cache`.',
  ),
  allow_tags_filter: bool('Clients may filter publications by tags.'),
  require_server_tags_filter: bool(
    'Refuse every subscription without a `server_tags_filter` of the backend (docs/access.md).',
  ),
  allowed_delta_types: strings('Delta compression that clients may request. Only `fossil` exists.', {
    values: ['fossil'],
  }),
  delta_publish: bool('Allow deltas for every publication, not only for those published with `delta`.'),
  publish_exclude_sender: bool(
    'Do not send the publication of a client to its own connection. Needs `channel.targeted_publications`. Halley only.',
  ),
  keep_latest_publication: bool(
    'Deltas refer to the last publication that a worker has sent, so channels without history and subscribers without ' +
      'positions get deltas, too (docs/delta.md).',
  ),
  allow_channel_compaction: bool(
    'SDKs get publications, joins and leaves with a short id instead of the channel name (docs/access.md).',
  ),
  shared_position_sync: bool(
    'No effect: a worker always checks the position of a channel once for all its subscribers.',
  ),
  batch_max_size: int(
    0,
    'Maximum publications, joins and leaves in a batch of a channel. 0: no such limit. See docs/batching.md.',
    { max: 10_000 },
  ),
  batch_max_delay: duration(
    '0s',
    'Time that publications, joins and leaves of a channel are collected in a batch. 0: 1 s if ' +
      '`batch_max_size` is set, otherwise no batches.',
    { min: 0, max: 60_000 },
  ),
  batch_max_bytes: int(
    1048576,
    'Maximum memory of a batch: payloads, tags and 200 bytes for each item. Never more than half of ' +
      '`client.queue_max_size`. Halley only.',
    { unit: 'bytes', min: 1, max: 2147483647 },
  ),
  batch_flush_latest: bool('Send only the newest publication of a batch.'),
  batch_conflate_tag: string(
    'Name of a tag. `batch_flush_latest` then sends the newest publication of each value of the tag, and all ' +
      'publications without the tag. Halley only.',
  ),
  allow_subscribe_for_client: bool('Users may subscribe without a token.'),
  allow_subscribe_for_anonymous: bool('Extends `allow_subscribe_for_client` to anonymous users.'),
  allow_publish_for_client: bool('Clients may publish.'),
  allow_publish_for_subscriber: bool('Subscribers may publish.'),
  allow_publish_for_anonymous: bool('Extends the two publish permissions above to anonymous users.'),
  allow_presence_for_client: bool('Clients may read presence.'),
  allow_presence_for_subscriber: bool('Subscribers may read presence.'),
  allow_presence_for_anonymous: bool('Extends the two presence permissions above to anonymous users.'),
  allow_history_for_client: bool('Clients may read history.'),
  allow_history_for_subscriber: bool('Subscribers may read history.'),
  allow_history_for_anonymous: bool('Extends the two history permissions above to anonymous users.'),
  allow_user_limited_channels: bool(
    'In a channel with `#` in its name, only the users listed after it may subscribe without a token.',
  ),
  subscribe_proxy_enabled: bool('The backend decides on subscriptions without a token.'),
  subscribe_proxy_name: string(proxyName('subscribe'), { default: 'default' }),
  publish_proxy_enabled: bool('The backend decides on publications of clients.'),
  publish_proxy_name: string(proxyName('publish'), { default: 'default' }),
  sub_refresh_proxy_enabled: bool(
    'Call the backend when a subscription expires; clients no longer refresh it.',
  ),
  sub_refresh_proxy_name: string(proxyName('sub_refresh'), { default: 'default' }),
  cache_empty_proxy_enabled: bool(
    'Call the backend when a subscriber recovers from an empty cache. Needs force_recovery_mode `cache`.',
  ),
  cache_empty_proxy_name: string(proxyName('cache_empty'), { default: 'default' }),
  state_proxy_enabled: bool(
    'Report to the backend when a channel gets its first subscriber and loses its last one. Needs `presence`. See ' +
      'docs/access.md.',
  ),
  state_proxy_name: string(proxyName('state'), { default: 'default' }),
  occupancy_channel_prefix: string(
    'Publish the number of subscribers of each channel to the channel with this prefix, such as `occ:`. Needs `presence`. ' +
      'Empty: off. See docs/access.md. Halley only.',
  ),
  occupancy_interval: duration(
    '1s',
    'Minimum time between two such publications of a channel. Halley only.',
    {
      min: 100,
      max: 3_600_000,
    },
  ),
  occupancy_users: bool('Publish the number of users, too. Costs more with Redis. Halley only.'),
  pattern: string(
    'Route of the channels of this namespace, such as `/users/:name`; their names start with `/`. Needs `channel.patterns`. ' +
      'Not for `channel.without_namespace`. See docs/access.md. Halley only.',
  ),
  channel_regex: string(
    'Pattern (RE2) for the channel name after the namespace, or for the whole name in a namespace with a `pattern`; replaces ' +
      'the ASCII check.',
  ),
  publication_data_format: string(
    'Allowed payloads: `json`, `json_object` or `binary`. Empty: `channel.publication_data_format`.',
    { values: FORMATS },
  ),
  subscription_type: string(
    'Kind of channel. Empty or `stream`: publications. `map`: keyed state, `map_clients` and `map_users`: maps of the ' +
      'clients or users of other channels (docs/maps.md). `shared_poll`: data of keys that the gateway asks the backend ' +
      'for (docs/shared-poll.md).',
    { values: ['', 'stream', 'map', 'map_clients', 'map_users', 'shared_poll'] },
  ),
  map_clients_presence_channel_prefix: string(
    'Maintain a map of the clients of each channel: the channel with this prefix, in a namespace of the type `map_clients`. ' +
      'Empty: off.',
  ),
  map_users_presence_channel_prefix: string(
    'Maintain a map of the users of each channel: the channel with this prefix, in a namespace of the type `map_users`. ' +
      'Empty: off.',
  ),
  map: {
    mode: string(
      'Required in a map. `ephemeral`: clients read the state on each connect. `recoverable`: clients also recover ' +
        'missed changes. `persistent`: as `recoverable`, and keys do not expire.',
      { values: ['', 'ephemeral', 'recoverable', 'persistent'] },
    ),
    key_ttl: duration(
      '0s',
      'Time that a key is kept after its last write. Required unless the mode is `persistent`.',
      { min: 0, max: TTL_MAX },
    ),
    stream_size: int(0, 'Changes kept for recovery. 0: 100, none in the mode `ephemeral`.', {
      max: 2147483647,
    }),
    stream_ttl: duration(
      '0s',
      'Time that changes are kept after the last one. 0: 1m, none in the mode `ephemeral`.',
      { min: 0, max: TTL_MAX },
    ),
    meta_ttl: duration(
      '0s',
      'Time that offset and epoch are kept after their last use. 0: ten times `map.stream_ttl` and at least ' +
        '`map.key_ttl`; without limit in the mode `persistent`.',
      { min: 0, max: TTL_MAX },
    ),
    remove_client_on_unsubscribe: bool('Remove the key that is the id of a client when it unsubscribes.'),
    client_key: string(
      'Key of the publications of clients: `client_id` or `user_id`. Empty: the key that the client sends.',
      { values: ['', 'client_id', 'user_id'] },
    ),
    allow_publish_for_client: bool('Clients may publish keys.'),
    allow_publish_for_subscriber: bool('Subscribers may publish keys.'),
    allow_publish_for_anonymous: bool('Extends the two publish permissions of maps to anonymous users.'),
    allow_remove_for_client: bool('Clients may remove keys.'),
    allow_remove_for_subscriber: bool('Subscribers may remove keys.'),
    allow_remove_for_anonymous: bool('Extends the two remove permissions of maps to anonymous users.'),
    publish_proxy_enabled: bool('The backend decides on keys that clients publish.'),
    publish_proxy_name: string(proxyName('map_publish'), { default: 'default' }),
    remove_proxy_enabled: bool('The backend decides on keys that clients remove.'),
    remove_proxy_name: string(proxyName('map_remove'), { default: 'default' }),
    default_page_size: int(100, 'Entries or changes in a reply to a client that requests no limit.', PAGE),
    min_page_size: int(100, 'Smaller limits of clients are raised to this.', PAGE),
    max_page_size: int(1000, 'Larger limits of clients are lowered to this.', PAGE),
    live_transition_max_publication_limit: int(
      0,
      'Maximum changes in the last reply to a subscribing client, or error 112. 0: `map.max_page_size`.',
      { max: PAGE.max },
    ),
    subscribe_catch_up_timeout: duration(
      '5s',
      'Time a client has from the first page to the last before close 3008.',
    ),
    max_value_bytes: int(
      1048576,
      'Maximum size of a value that `append` extends; an append beyond it gets error 107. Halley only.',
      { unit: 'bytes', min: 1, max: 2147483647 },
    ),
  },
  shared_poll: {
    proxy_name: string(proxyName('shared_poll_refresh')),
    mode: string(
      'Empty or `versionless`: the gateway compares the data of keys. `versioned`: the backend sends versions.',
      { values: ['', 'versionless', 'versioned'] },
    ),
    refresh_interval: duration('10s', 'Interval at which the backend is asked for each tracked key.', {
      min: 10,
    }),
    refresh_batch_size: int(1000, 'Maximum keys in one call of the backend.', { min: 1, max: 100_000 }),
    max_keys_per_connection: int(5000, 'Maximum keys that a connection tracks in one channel.', {
      min: 1,
      max: 1_000_000,
    }),
    publish_enabled: bool('Allow `shared_poll_publish` of the API. Needs `shared_poll.mode` `versioned`.'),
    channel_shutdown_delay: duration(
      '1s',
      'Time that the epoch of a channel is kept after its last subscriber left.',
      {
        min: 0,
      },
    ),
    track_expired_extra_delay: duration(
      '25s',
      'Time a client has to renew an expired signature before its keys are no longer tracked.',
      { min: 0 },
    ),
  },
})

export const channelSection = live({
  map_broker: {
    type: string('Maps are kept by the engine: empty, or the same as `engine.type`.', {
      values: ['', 'memory', 'redis'],
      unsupported: { postgres: 'maps are kept by the engine; use memory or redis, as engine.type' },
    }),
  },
  shared_poll: {
    hmac_secret_key: string(
      'Secret that signs the keys which clients may track. Required with shared-poll channels.',
      { secret: true },
    ),
    hmac_previous_secret_key: string(
      'Secret before the last rotation, tried when the first one fails. Empty: none.',
      { secret: true },
    ),
    hmac_previous_secret_key_valid_until: int(
      0,
      'The previous secret is only tried for signatures made until then. 0: for all.',
      { unit: 'unix seconds' },
    ),
    concurrency_limit: int(64, 'Maximum concurrent calls of shared polls on this node.', {
      min: 1,
      max: 65535,
    }),
  },
  channel: {
    history_meta_ttl: duration(
      '720h',
      'Time that offset and epoch of a stream are kept after their last use.',
      { min: 1000, max: TTL_MAX },
    ),
    max_length: int(255, 'Maximum length of a channel name that a client may subscribe to.', {
      unit: 'bytes',
      min: 1,
    }),
    tags_filters_max_size: int(
      1048576,
      'Maximum size of the distinct tag filters of a channel in one worker: their JSON, and 128 bytes for each. ' +
        'A subscribe beyond it gets error 106. Halley only.',
      { unit: 'bytes', min: 1 },
    ),
    server_tags_filters_max_size: int(
      16777216,
      'The same for filters of the backend (`server_tags_filter`), with the filters of clients within them. Halley only.',
      { unit: 'bytes', min: 1 },
    ),
    targeted_publications: bool(
      'Publications may exclude a client or a user, or be for some users only (docs/access.md). All nodes must know them: ' +
        'older versions deliver such a publication to all subscribers. Halley only.',
    ),
    protobuf_compaction: bool(
      '`allow_channel_compaction` also applies to Protobuf clients. The JavaScript SDK (5.8.0) drops compact publications in ' +
        'Protobuf (docs/access.md). Halley only.',
    ),
    private_prefix: string('Channels with this prefix always need a subscription token. Empty: off.', {
      default: '$',
    }),
    namespace_boundary: string('Ends the namespace in a channel name. Empty: off.', { default: ':' }),
    patterns: bool(
      'Channels whose names start with `/` belong to the namespace whose `pattern` fits, and to no other. Halley only.',
    ),
    user_boundary: string('Starts the list of users in a channel name. Empty: off.', { default: '#' }),
    user_separator: string('Separates the users of that list. Empty: the list is one user.', {
      default: ',',
    }),
    publication_data_format: string(
      'Allowed payloads in namespaces that do not set their own. Empty: any payload except an empty one.',
      { values: FORMATS },
    ),
    without_namespace: channelOptions,
    namespaces: named(
      'Namespaces: objects with a `name` (two or more of `-a-zA-Z0-9_.`) and any of the channel options.',
      channelOptions,
    ),
  },
})
