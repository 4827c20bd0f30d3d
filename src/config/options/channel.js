import { bool, duration, int, string, strings } from './make.js'

/** 100 years: beyond any use, and exact in all calculations with ms. */
const TTL_MAX = 100 * 365 * 86400 * 1000

const FORMATS = ['', 'json', 'json_object', 'binary']
const TYPE_LATER = 'subscription type is not there yet; only stream channels are'

/** Of a namespace, and of the channels without one. Paths are relative to the namespace. */
export const channelOptions = [
  bool('presence', 'List subscribers in presence.'),
  bool('join_leave', 'Produce join and leave events.'),
  bool('force_push_join_leave', 'Send them to every subscriber without asking.'),

  int('history_size', 0, 'Publications kept for each channel. History is on when size and ttl are above 0.', {
    max: 2147483647,
  }),
  duration('history_ttl', '0s', 'How long they are kept after the last one. Whole seconds.', {
    min: 0,
    max: TTL_MAX,
  }),
  duration(
    'history_meta_ttl',
    '0s',
    'How long offset and epoch live after the last use. 0: `channel.history_meta_ttl`.',
    { min: 0, max: TTL_MAX },
  ),

  bool('force_positioning', 'Every subscription keeps its position, so that a gap is noticed.'),
  bool('allow_positioning', 'The same for clients that ask for it.'),
  bool('force_recovery', 'Every subscription recovers missed publications. Needs history.'),
  bool('allow_recovery', 'The same for clients that ask for it.'),
  string('force_recovery_mode', '', 'Empty or `stream`: all missed publications. `cache`: the newest one.', {
    values: ['', 'stream', 'cache'],
  }),
  bool(
    'auto_cache_recover',
    'Recover the newest publication on every subscribe. Needs force_recovery and force_recovery_mode `cache`.',
  ),

  bool('allow_tags_filter', 'Clients may filter publications by tags.'),
  strings('allowed_delta_types', 'Delta compressions that clients may ask for; there is `fossil`.', {
    values: ['fossil'],
  }),
  bool('delta_publish', 'Every publication may be sent as a delta, not only those whose publish says so.'),

  bool('allow_subscribe_for_client', 'Users may subscribe without a token.'),
  bool('allow_subscribe_for_anonymous', 'So may anonymous ones; does nothing without the former.'),
  bool('allow_publish_for_client', 'Clients may publish.'),
  bool('allow_publish_for_subscriber', 'Subscribers may publish.'),
  bool('allow_publish_for_anonymous', 'So may anonymous ones; does nothing without one of the former.'),
  bool('allow_presence_for_client', 'Clients may ask for presence.'),
  bool('allow_presence_for_subscriber', 'Subscribers may ask for presence.'),
  bool('allow_presence_for_anonymous', 'So may anonymous ones; does nothing without one of the former.'),
  bool('allow_history_for_client', 'Clients may read history.'),
  bool('allow_history_for_subscriber', 'Subscribers may read history.'),
  bool('allow_history_for_anonymous', 'So may anonymous ones; does nothing without one of the former.'),
  bool('allow_user_limited_channels', 'Names with `#` and user ids are for these users only.'),

  string('channel_regex', '', 'Pattern (RE2) for the name behind the namespace; replaces the ASCII check.'),
  string(
    'publication_data_format',
    '',
    'Payloads allowed: empty (any, but there must be one), `json`, `json_object`, `binary`. Empty: the global one.',
    { values: FORMATS },
  ),
  string('subscription_type', '', 'Kind of channel; only streams are there.', {
    values: ['', 'stream'],
    later: { map: TYPE_LATER, map_clients: TYPE_LATER, map_users: TYPE_LATER, shared_poll: TYPE_LATER },
  }),
]

/** `channel.*` except the namespaces. */
export const globalChannelOptions = [
  duration(
    'channel.history_meta_ttl',
    '720h',
    'How long offset and epoch of a stream live after the last use.',
    {
      min: 1000,
      max: TTL_MAX,
    },
  ),
  int('channel.max_length', 255, 'Longest channel name a client may subscribe to.', {
    unit: 'bytes',
    min: 1,
  }),
  string(
    'channel.private_prefix',
    '$',
    'Channels with this prefix always need a subscription token. Empty: off.',
  ),
  string('channel.namespace_boundary', ':', 'Ends the namespace in a channel name. Empty: off.'),
  string('channel.user_boundary', '#', 'Starts the list of users in a channel name. Empty: off.'),
  string('channel.user_separator', ',', 'Separates the users of that list. Empty: one user.'),
  string(
    'channel.publication_data_format',
    '',
    'Payloads allowed in every namespace that does not say otherwise.',
    { values: FORMATS },
  ),
]
