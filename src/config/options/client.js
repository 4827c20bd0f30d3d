import { bool, duration, int, live, string, strings, transforms } from './make.js'

const tokenOptions = {
  hmac_secret_key: string('Secret for HS256, HS384 and HS512.', { secret: true }),
  hmac_previous_secret_key: string('Secret before the last rotation, tried when the first one fails.', {
    secret: true,
  }),
  hmac_previous_secret_key_valid_until: int(
    0,
    'Time after which the previous secret is no longer tried. 0: it is always tried.',
    { unit: 'unix seconds' },
  ),
  rsa_public_key: string('RSA public key or certificate in PEM, for RS256, RS384 and RS512.'),
  ecdsa_public_key: string('ECDSA public key or certificate in PEM, for ES256, ES384 and ES512.'),
  jwks_public_endpoint: string(
    'URL of a JWKS, used instead of the keys above. May contain `{{name}}`, a named group of audience_regex or ' +
      'issuer_regex. Keys are kept for an hour, and longer while the URL cannot be reached.',
  ),
  audience: string('Required `aud`. Excludes audience_regex.'),
  audience_regex: string('Pattern (RE2) that `aud` must match. Excludes audience.'),
  issuer: string('Required `iss`. Excludes issuer_regex.'),
  issuer_regex: string('Pattern (RE2) that `iss` must match. Excludes issuer.'),
  user_id_claim: string('Name of the claim with the user id (letters and `_`). Empty: `sub`.'),
  insecure_skip_jwks_endpoint_safety_check: bool(
    'Allow `{{name}}` in the JWKS URL for groups that match more than a list of literals. Tokens are refused whose value ' +
      'is `.` or `..`, or has a separator of URLs (slash, backslash, `?`, `#`, `@`, `:`), also percent-encoded.',
  ),
}

export const clientOptions = live({
  client: {
    allowed_origins: strings(
      'Origins of pages that may connect: exact, with `*` wildcards, `loopback` (pages of this machine: `localhost`, ' +
        '`*.localhost`, `127.0.0.0/8`, `[::1]`, any port; Halley only), or `*` for all. Empty: only requests without ' +
        'Origin.',
    ),
    token: tokenOptions,
    subscription_token: {
      enabled: bool('Check subscription tokens with the keys of this block only.'),
      ...tokenOptions,
    },
    allow_anonymous_connect_without_token: bool('Clients without a token connect as anonymous users.'),
    disallow_anonymous_connection_tokens: bool('Refuse connection tokens without a user (close 3507).'),
    insecure: bool(
      'Clients need no connection token and may subscribe, publish, and read presence and history in all channels. ' +
        'Channels with `channel.private_prefix` still need a subscription token. For development only.',
    ),
    insecure_skip_token_signature_verify: bool(
      'Do not verify token signatures. All other token checks remain.',
    ),
    user_id_http_header: string(
      'Header with the user id, set by a trusted reverse proxy. The proxy must remove this header from client requests. ' +
        'Use ids in ASCII: uWebSockets.js drops other bytes at both ends of a header.',
    ),
    ping_interval: duration('25s', 'Interval of pings to a client. Must be above pong_timeout.', {
      change: 'workers',
    }),
    pong_timeout: duration('8s', 'Time a client has to answer a ping before close 3012.', {
      change: 'workers',
    }),
    expired_close_delay: duration(
      '25s',
      'Time a client has to refresh an expired connection before close 3005.',
      { min: 0 },
    ),
    expired_sub_close_delay: duration(
      '25s',
      'Time a client has to refresh an expired subscription before it ends.',
      { min: 0 },
    ),
    stale_close_delay: duration('10s', 'Time a new connection has to send `connect` before close 3502.', {
      change: 'workers',
    }),
    presence_update_interval: duration('27s', 'Interval of presence renewals and expiry checks.', {
      change: 'workers',
    }),
    channel_position_check_delay: duration(
      '40s',
      'Time without a publication after which the position of a subscription is checked.',
      { change: 'workers' },
    ),
    concurrency: int(
      0,
      'Commands of one connection that may wait for hooks or proxies at the same time. 0 and 1: one after another, and ' +
        'replies keep the order of commands. Above: replies come when they are ready; an unsubscribe waits for the ' +
        'subscribe of its channel.',
      { max: 1024 },
    ),
    channel_limit: int(128, 'Maximum subscriptions of one connection.', { min: 1 }),
    queue_max_size: int(
      1048576,
      'Maximum unsent bytes of a client before close 3008. One reply has at most three quarters of that in publications: ' +
        'a larger recovery is refused (`recovered: false`), a larger history ends early.',
      { unit: 'bytes', min: 1, max: 2147483647, change: 'workers' },
    ),
    max_messages_in_frame: int(
      16,
      'Maximum replies, or pushes of a batch, in one message of the transport. -1: no limit.',
      { min: -1, max: 10_000 },
    ),
    connection_limit: int(0, 'Maximum connections of this node. 0: no limit.'),
    user_connection_limit: int(
      0,
      'Maximum connections of one user; anonymous users are not counted. 0: no limit.',
    ),
    connection_rate_limit: int(0, 'Maximum new connections a second on this node. 0: no limit.'),
    history_max_publication_limit: int(
      300,
      'Maximum publications in one history reply to a client. 0: no limit.',
    ),
    recovery_max_publication_limit: int(
      300,
      'Maximum publications recovered for one subscription. 0: no limit.',
    ),
    keep_connection_details: bool(
      'Keep the name and version of the client program, the ids of its tokens and the metadata of its connection for ' +
        'the method `connections` of the server API. Labels are always kept. Applies to new connections.',
      { default: true },
    ),
    connect_include_server_time: bool('Send the server time (unix ms) in the connect reply.'),
    connect_code_to_unidirectional_disconnect: {
      enabled: bool('Replace disconnects of one-way clients whose connect failed, as `transforms` says.'),
      transforms: transforms(
        'Disconnect for each error code of connect. Codes not listed are not replaced.',
        { code: { type: 'integer', minimum: 3000, maximum: 4999 }, reason: { type: 'string' } },
      ),
    },
    acks: {
      enabled: bool(
        'Allow `request` and `ack` in the server API: clients answer messages with the RPC method `$ack`, which hooks ' +
          'and proxies no longer get (docs/access.md; Halley only).',
      ),
      max_pending: int(
        1000,
        'Maximum requests of a worker that wait for answers: of those it has sent, and of those sent to its clients ' +
          '(Halley only).',
        { min: 1, max: 100_000 },
      ),
      max_targets: int(10_000, 'Maximum clients of one request (Halley only).', { min: 1, max: 100_000 }),
    },
    subscribe_to_user_personal_channel: {
      enabled: bool('Subscribe every user to a personal channel.'),
      personal_channel_namespace: string(
        'Namespace of the personal channel, `<namespace>:#<user>`. Empty: the channel is `#<user>`.',
      ),
      single_connection: bool(
        'A new connection of a user closes the older ones (3504). Needs presence in that namespace.',
      ),
    },
  },
})
