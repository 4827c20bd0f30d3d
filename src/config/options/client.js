import { bool, duration, int, live, string, strings, transforms } from './make.js'

/**
 * @template {string} B
 * @param {B} block `client.token` or `client.subscription_token`
 */
const tokenOptions = block => [
  string(`${block}.hmac_secret_key`, '', 'Secret for HS256, HS384 and HS512.', { secret: true }),
  string(
    `${block}.hmac_previous_secret_key`,
    '',
    'Secret before the last rotation, tried when the first one fails.',
    { secret: true },
  ),
  int(
    `${block}.hmac_previous_secret_key_valid_until`,
    0,
    'Time after which the previous secret is no longer tried. 0: it is always tried.',
    { unit: 'unix seconds' },
  ),
  string(`${block}.rsa_public_key`, '', 'RSA public key or certificate in PEM, for RS256, RS384 and RS512.'),
  string(
    `${block}.ecdsa_public_key`,
    '',
    'ECDSA public key or certificate in PEM, for ES256, ES384 and ES512.',
  ),
  string(
    `${block}.jwks_public_endpoint`,
    '',
    'URL of a JWKS, used instead of the keys above. May contain `{{name}}`, a named group of audience_regex or ' +
      'issuer_regex. Keys are kept for an hour, and longer while the URL cannot be reached.',
  ),
  string(`${block}.audience`, '', 'Required `aud`. Excludes audience_regex.'),
  string(`${block}.audience_regex`, '', 'Pattern (RE2) that `aud` must match. Excludes audience.'),
  string(`${block}.issuer`, '', 'Required `iss`. Excludes issuer_regex.'),
  string(`${block}.issuer_regex`, '', 'Pattern (RE2) that `iss` must match. Excludes issuer.'),
  string(`${block}.user_id_claim`, '', 'Name of the claim with the user id (letters and `_`). Empty: `sub`.'),
  bool(
    `${block}.insecure_skip_jwks_endpoint_safety_check`,
    'Allow `{{name}}` in the JWKS URL for groups that match more than a list of literals. Tokens are refused whose value ' +
      'is `.` or `..`, or has a separator of URLs (slash, backslash, `?`, `#`, `@`, `:`), also percent-encoded.',
  ),
]

export const clientOptions = live([
  strings(
    'client.allowed_origins',
    'Origins of pages that may connect: exact, with `*` wildcards, `loopback` (pages of this machine: `localhost`, ' +
      '`*.localhost`, `127.0.0.0/8`, `[::1]`, any port; Halley only), or `*` for all. Empty: only requests without ' +
      'Origin.',
  ),

  ...tokenOptions('client.token'),
  bool('client.subscription_token.enabled', 'Check subscription tokens with the keys of this block only.'),
  ...tokenOptions('client.subscription_token'),

  bool('client.allow_anonymous_connect_without_token', 'Clients without a token connect as anonymous users.'),
  bool(
    'client.disallow_anonymous_connection_tokens',
    'Refuse connection tokens without a user (close 3507).',
  ),
  bool(
    'client.insecure',
    'Clients need no connection token and may subscribe, publish, and read presence and history in all channels. ' +
      'Channels with `channel.private_prefix` still need a subscription token. For development only.',
  ),
  bool(
    'client.insecure_skip_token_signature_verify',
    'Do not verify token signatures. All other token checks remain.',
  ),
  string(
    'client.user_id_http_header',
    '',
    'Header with the user id, set by a trusted reverse proxy. The proxy must remove this header from client requests. ' +
      'Use ids in ASCII: uWebSockets.js drops other bytes at both ends of a header.',
  ),

  duration('client.ping_interval', '25s', 'Interval of pings to a client. Must be above pong_timeout.', {
    change: 'workers',
  }),
  duration('client.pong_timeout', '8s', 'Time a client has to answer a ping before close 3012.', {
    change: 'workers',
  }),
  duration(
    'client.expired_close_delay',
    '25s',
    'Time a client has to refresh an expired connection before close 3005.',
    { min: 0 },
  ),
  duration(
    'client.expired_sub_close_delay',
    '25s',
    'Time a client has to refresh an expired subscription before it ends.',
    { min: 0 },
  ),
  duration(
    'client.stale_close_delay',
    '10s',
    'Time a new connection has to send `connect` before close 3502.',
    { change: 'workers' },
  ),
  duration('client.presence_update_interval', '27s', 'Interval of presence renewals and expiry checks.', {
    change: 'workers',
  }),
  duration(
    'client.channel_position_check_delay',
    '40s',
    'Time without a publication after which the position of a subscription is checked.',
    { change: 'workers' },
  ),

  int(
    'client.concurrency',
    0,
    'Commands of one connection that may wait for hooks or proxies at the same time. 0 and 1: one after another, and ' +
      'replies keep the order of commands. Above: replies come when they are ready; an unsubscribe waits for the ' +
      'subscribe of its channel.',
    { max: 1024 },
  ),
  int('client.channel_limit', 128, 'Maximum subscriptions of one connection.', { min: 1 }),
  int(
    'client.queue_max_size',
    1048576,
    'Maximum unsent bytes of a client before close 3008. One reply has at most three quarters of that in publications: ' +
      'a larger recovery is refused (`recovered: false`), a larger history ends early.',
    { unit: 'bytes', min: 1, max: 2147483647, change: 'workers' },
  ),
  int(
    'client.max_messages_in_frame',
    16,
    'Maximum replies, or pushes of a batch, in one message of the transport. -1: no limit.',
    { min: -1, max: 10_000 },
  ),
  int('client.connection_limit', 0, 'Maximum connections of this node. 0: no limit.'),
  int(
    'client.user_connection_limit',
    0,
    'Maximum connections of one user; anonymous users are not counted. 0: no limit.',
  ),
  int('client.connection_rate_limit', 0, 'Maximum new connections a second on this node. 0: no limit.'),
  int(
    'client.history_max_publication_limit',
    300,
    'Maximum publications in one history reply to a client. 0: no limit.',
  ),
  int(
    'client.recovery_max_publication_limit',
    300,
    'Maximum publications recovered for one subscription. 0: no limit.',
  ),
  bool('client.connect_include_server_time', 'Send the server time (unix ms) in the connect reply.'),

  bool(
    'client.connect_code_to_unidirectional_disconnect.enabled',
    'Replace disconnects of one-way clients whose connect failed, as `transforms` says.',
  ),
  transforms(
    'client.connect_code_to_unidirectional_disconnect.transforms',
    'Disconnect for each error code of connect. Codes not listed are not replaced.',
    { code: { type: 'integer', minimum: 3000, maximum: 4999 }, reason: { type: 'string' } },
  ),

  bool('client.subscribe_to_user_personal_channel.enabled', 'Subscribe every user to a personal channel.'),
  string(
    'client.subscribe_to_user_personal_channel.personal_channel_namespace',
    '',
    'Namespace of the personal channel, `<namespace>:#<user>`. Empty: the channel is `#<user>`.',
  ),
  bool(
    'client.subscribe_to_user_personal_channel.single_connection',
    'A new connection of a user closes the older ones (3504). Needs presence in that namespace.',
  ),
])
