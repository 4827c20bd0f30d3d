import { bool, duration, int, string, strings, transforms } from './make.js'

/** @param {string} block `client.token` or `client.subscription_token` */
const tokenOptions = block => [
  string(`${block}.hmac_secret_key`, '', 'Secret for HS256, HS384 and HS512.', { secret: true }),
  string(
    `${block}.hmac_previous_secret_key`,
    '',
    'Secret before the last rotation, tried when the first one fails.',
    {
      secret: true,
    },
  ),
  int(
    `${block}.hmac_previous_secret_key_valid_until`,
    0,
    'Until when the previous secret is tried. 0: always.',
    {
      unit: 'unix seconds',
    },
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
    'URL of a JWKS. With it the keys above are not used. May hold `{{name}}` of a named group of a regex below.',
  ),
  string(`${block}.audience`, '', 'Required `aud`. Excludes audience_regex.'),
  string(`${block}.audience_regex`, '', 'Pattern (RE2) that `aud` must match. Excludes audience.'),
  string(`${block}.issuer`, '', 'Required `iss`. Excludes issuer_regex.'),
  string(`${block}.issuer_regex`, '', 'Pattern (RE2) that `iss` must match. Excludes issuer.'),
  string(`${block}.user_id_claim`, '', 'Claim with the user id, letters and `_` only. Empty: `sub`.'),
  bool(
    `${block}.insecure_skip_jwks_endpoint_safety_check`,
    'Accept a templated JWKS URL filled from groups that match more than a list of literals.',
  ),
]

export const clientOptions = [
  strings(
    'client.allowed_origins',
    'Origins that browsers may connect from: exact, with `*` wildcards, or `*` for all. Empty: only requests without Origin.',
  ),

  ...tokenOptions('client.token'),
  bool('client.subscription_token.enabled', 'Check subscription tokens with the keys of this block only.'),
  ...tokenOptions('client.subscription_token'),

  bool(
    'client.allow_anonymous_connect_without_token',
    'Clients without a token connect as the anonymous user.',
  ),
  bool(
    'client.disallow_anonymous_connection_tokens',
    'Refuse connection tokens without a user (close 3507).',
  ),
  bool(
    'client.insecure',
    'No tokens needed; subscribe, publish, presence and history allowed everywhere. For development only.',
  ),
  bool(
    'client.insecure_skip_token_signature_verify',
    'Do not check token signatures; the other checks stay.',
  ),
  string(
    'client.user_id_http_header',
    '',
    'Header with the user id, set by a trusted reverse proxy that also removes it from what clients send.',
  ),

  duration('client.ping_interval', '25s', 'Time between pings to a client. Must be above pong_timeout.'),
  duration('client.pong_timeout', '8s', 'Time a client has for its pong (then close 3012).'),
  duration('client.expired_close_delay', '25s', 'Time to refresh an expired connection before close 3005.', {
    min: 0,
  }),
  duration(
    'client.expired_sub_close_delay',
    '25s',
    'Time to refresh an expired subscription before it ends.',
    {
      min: 0,
    },
  ),
  duration('client.stale_close_delay', '10s', 'Time to send connect before close 3502.'),
  duration(
    'client.presence_update_interval',
    '27s',
    'Time between renewals of presence, and of expiry checks.',
  ),
  duration(
    'client.channel_position_check_delay',
    '40s',
    'Time without a publication until a position is checked.',
  ),

  int('client.channel_limit', 128, 'Subscriptions of one connection.', { min: 1 }),
  int('client.queue_max_size', 1048576, 'Bytes a client may leave unread before close 3008.', {
    unit: 'bytes',
    min: 1,
    max: 2147483647,
  }),
  int('client.connection_limit', 0, 'Connections of this node. 0: no limit.'),
  int('client.user_connection_limit', 0, 'Connections of one user (not the anonymous one). 0: no limit.'),
  int('client.connection_rate_limit', 0, 'New connections a second on this node. 0: no limit.'),
  int(
    'client.history_max_publication_limit',
    300,
    'Publications in one history answer to a client. 0: no limit.',
  ),
  int(
    'client.recovery_max_publication_limit',
    300,
    'Publications recovered for one subscription. 0: no limit.',
  ),
  bool('client.connect_include_server_time', 'Send the server time (unix ms) in the connect reply.'),

  bool(
    'client.connect_code_to_unidirectional_disconnect.enabled',
    'Take the disconnects for failed connects of one-way clients from `transforms`.',
  ),
  transforms(
    'client.connect_code_to_unidirectional_disconnect.transforms',
    'Disconnect for error codes of connect; codes that are not named keep their own.',
    { code: { type: 'integer', minimum: 3000, maximum: 4999 }, reason: { type: 'string' } },
  ),

  bool(
    'client.subscribe_to_user_personal_channel.enabled',
    'Subscribe every user to a channel of their own.',
  ),
  string(
    'client.subscribe_to_user_personal_channel.personal_channel_namespace',
    '',
    'Namespace of that channel, `<namespace>:#<user>`. Empty: `#<user>`.',
  ),
  bool(
    'client.subscribe_to_user_personal_channel.single_connection',
    'A new connection of a user ends the older ones (3504). Needs presence in that namespace.',
  ),
]
