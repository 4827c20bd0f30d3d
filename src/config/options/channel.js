import { bool, duration, int, live, string, strings } from './make.js'

/** 100 years, in ms: more than anyone needs, and far below the largest exact integer. */
const TTL_MAX = 100 * 365 * 86400 * 1000

const FORMATS = /** @type {const} */ (['', 'json', 'json_object', 'binary'])
const UNSUPPORTED_TYPE = 'this subscription type is not supported yet; only stream channels are'

/** Description of the option that selects a proxy. @param {string} event */
const proxyName = event =>
  `An entry of \`proxies\`; \`default\` or empty: the block \`channel.proxy.${event}\`.`

/** Options of each entry of `channel.namespaces` and of `channel.without_namespace`. */
export const channelOptions = live([
  bool('presence', 'List subscribers in presence.'),
  bool('join_leave', 'Produce join and leave events.'),
  bool(
    'force_push_join_leave',
    'Send join and leave events to every subscriber, also to those that did not request them.',
  ),

  int('history_size', 0, 'Publications kept for each channel. History is on when size and ttl are above 0.', {
    max: 2147483647,
  }),
  duration('history_ttl', '0s', 'Time that history is kept after the last publication. Whole seconds.', {
    min: 0,
    max: TTL_MAX,
  }),
  duration(
    'history_meta_ttl',
    '0s',
    'Time that offset and epoch are kept after their last use. 0: `channel.history_meta_ttl`.',
    { min: 0, max: TTL_MAX },
  ),

  bool(
    'force_positioning',
    'Track the position of every subscription, so that missed publications are detected.',
  ),
  bool('allow_positioning', 'Track the position of subscriptions that request it.'),
  bool('force_recovery', 'Recover missed publications for every subscription. Needs history.'),
  bool('allow_recovery', 'Recover missed publications for subscriptions that request it. Needs history.'),
  string(
    'force_recovery_mode',
    '',
    'Empty or `stream`: recover all missed publications. `cache`: recover only the newest one.',
    { values: ['', 'stream', 'cache'] },
  ),
  bool(
    'auto_cache_recover',
    'Recover the newest publication on every subscribe. Needs force_recovery and force_recovery_mode `cache`.',
  ),

  bool('allow_tags_filter', 'Clients may filter publications by tags.'),
  strings('allowed_delta_types', 'Delta compression that clients may request. Only `fossil` exists.', {
    values: ['fossil'],
  }),
  bool('delta_publish', 'Allow deltas for every publication, not only for those published with `delta`.'),

  int(
    'batch_max_size',
    0,
    'Maximum publications, joins and leaves in a batch of a channel. 0: no such limit. See docs/batching.md.',
    { max: 10_000 },
  ),
  duration(
    'batch_max_delay',
    '0s',
    'Time that publications, joins and leaves of a channel are collected in a batch. 0: 1 s if ' +
      '`batch_max_size` is set, otherwise no batches.',
    { min: 0, max: 60_000 },
  ),
  int(
    'batch_max_bytes',
    1048576,
    'Maximum memory of a batch: payloads, tags and 200 bytes for each item. Never more than half of ' +
      '`client.queue_max_size`. Halley only.',
    { unit: 'bytes', min: 1, max: 2147483647 },
  ),
  bool('batch_flush_latest', 'Send only the newest publication of a batch.'),
  string(
    'batch_conflate_tag',
    '',
    'Name of a tag. `batch_flush_latest` then sends the newest publication of each value of the tag, and all ' +
      'publications without the tag. Halley only.',
  ),

  bool('allow_subscribe_for_client', 'Users may subscribe without a token.'),
  bool('allow_subscribe_for_anonymous', 'Extends `allow_subscribe_for_client` to anonymous users.'),
  bool('allow_publish_for_client', 'Clients may publish.'),
  bool('allow_publish_for_subscriber', 'Subscribers may publish.'),
  bool('allow_publish_for_anonymous', 'Extends the two publish permissions above to anonymous users.'),
  bool('allow_presence_for_client', 'Clients may read presence.'),
  bool('allow_presence_for_subscriber', 'Subscribers may read presence.'),
  bool('allow_presence_for_anonymous', 'Extends the two presence permissions above to anonymous users.'),
  bool('allow_history_for_client', 'Clients may read history.'),
  bool('allow_history_for_subscriber', 'Subscribers may read history.'),
  bool('allow_history_for_anonymous', 'Extends the two history permissions above to anonymous users.'),
  bool(
    'allow_user_limited_channels',
    'In a channel with `#` in its name, only the users listed after it may subscribe without a token.',
  ),

  bool('subscribe_proxy_enabled', 'The backend decides on subscriptions without a token.'),
  string('subscribe_proxy_name', 'default', proxyName('subscribe')),
  bool('publish_proxy_enabled', 'The backend decides on publications of clients.'),
  string('publish_proxy_name', 'default', proxyName('publish')),
  bool(
    'sub_refresh_proxy_enabled',
    'Ask the backend when a subscription expires; clients no longer refresh theirs.',
  ),
  string('sub_refresh_proxy_name', 'default', proxyName('sub_refresh')),

  string(
    'channel_regex',
    '',
    'Pattern (RE2) for the channel name after the namespace; replaces the ASCII check.',
  ),
  string(
    'publication_data_format',
    '',
    'Allowed payloads: `json`, `json_object` or `binary`. Empty: `channel.publication_data_format`.',
    { values: FORMATS },
  ),
  string('subscription_type', '', 'Kind of channel. Only streams are supported.', {
    values: ['', 'stream'],
    unsupported: {
      map: UNSUPPORTED_TYPE,
      map_clients: UNSUPPORTED_TYPE,
      map_users: UNSUPPORTED_TYPE,
      shared_poll: UNSUPPORTED_TYPE,
    },
  }),
])

/** `channel.*` except the namespaces. */
export const globalChannelOptions = live([
  duration(
    'channel.history_meta_ttl',
    '720h',
    'Time that offset and epoch of a stream are kept after their last use.',
    { min: 1000, max: TTL_MAX },
  ),
  int('channel.max_length', 255, 'Maximum length of a channel name that a client may subscribe to.', {
    unit: 'bytes',
    min: 1,
  }),
  int(
    'channel.tags_filters_max_size',
    1048576,
    'Maximum size of the distinct tag filters of a channel in one worker: their JSON, and 128 bytes for each. ' +
      'A subscribe beyond it gets error 106. Halley only.',
    { unit: 'bytes', min: 1 },
  ),
  string(
    'channel.private_prefix',
    '$',
    'Channels with this prefix always need a subscription token. Empty: off.',
  ),
  string('channel.namespace_boundary', ':', 'Ends the namespace in a channel name. Empty: off.'),
  string('channel.user_boundary', '#', 'Starts the list of users in a channel name. Empty: off.'),
  string('channel.user_separator', ',', 'Separates the users of that list. Empty: the list is one user.'),
  string(
    'channel.publication_data_format',
    '',
    'Allowed payloads in namespaces that do not set their own. Empty: any payload except an empty one.',
    { values: FORMATS },
  ),
])
