import { bool, duration, int, newWorkers, string, transforms } from './make.js'

const BODY = { unit: 'bytes', min: 1, max: 1073741823 }
const HALLEY_ONLY = 'Halley only.'

/**
 * @template {string} B
 * @param {B} block
 * @param {string} what
 * @param {string} path
 */
const endpoint = (block, what, path) => [
  bool(`${block}.enabled`, `Serve ${what}.`),
  string(`${block}.handler_prefix`, path, 'Path of the endpoint.', { prefix: true }),
]

/**
 * @template {string} B
 * @param {B} block
 */
const bodyLimit = block =>
  int(`${block}.max_request_body_size`, 65536, 'Maximum size of a request body; larger ones get 413.', BODY)

/**
 * @template {string} B
 * @param {B} block
 */
const httpResponses = block => [
  bool(
    `${block}.connect_code_to_http_response.enabled`,
    'Answer a failed connect with an HTTP status instead of a stream with a disconnect push.',
  ),
  transforms(
    `${block}.connect_code_to_http_response.transforms`,
    'HTTP status and body for each error or disconnect code. Codes not listed get 500. An empty body is replaced by the reason.',
    {
      status_code: { type: 'integer', minimum: 200, maximum: 599 },
      body: { type: 'string', default: '' },
    },
  ),
]

export const transportOptions = newWorkers([
  bool('websocket.disabled', 'Disable the WebSocket endpoint.'),
  string('websocket.handler_prefix', '/connection/websocket', 'Path of the WebSocket endpoint.', {
    prefix: true,
  }),
  int(
    'websocket.message_size_limit',
    65536,
    'Maximum size of a message from a client; larger ones close with 1009. `uws` reads, and keeps, up to four times ' +
      'the size of a message; a larger one ends the connection without a close frame.',
    BODY,
  ),
  bool(
    'websocket.compression',
    'Offer permessage-deflate (without context takeover). It costs CPU and memory.',
  ),
  int('websocket.compression_min_size', 0, 'Messages shorter than this are sent uncompressed.', {
    unit: 'bytes',
  }),
  int(
    'websocket.compression_level',
    1,
    'Compression level of the `node` driver, 1 to 9. `uws` has a fixed one.',
    { min: 1, max: 9 },
  ),

  ...endpoint(
    'http_stream',
    'HTTP streaming, two-way with the emulation endpoint',
    '/connection/http_stream',
  ),
  bodyLimit('http_stream'),
  ...endpoint('sse', 'server-sent events, two-way with the emulation endpoint', '/connection/sse'),
  bodyLimit('sse'),
  ...endpoint(
    'poll',
    `two-way long-poll, for \`LongPollSocket\`. ${HALLEY_ONLY}`.replace(/\.$/, ''),
    '/connection/poll',
  ),
  bodyLimit('poll'),
  duration('poll.timeout', '25s', `Maximum time a poll waits for data. ${HALLEY_ONLY}`, { max: 300_000 }),
  duration(
    'poll.session_timeout',
    '30s',
    `A long-poll session ends after this time without a pending poll. ${HALLEY_ONLY}`,
    { max: 3_600_000 },
  ),
  int(
    'poll.replies_max_size',
    67108864,
    'Maximum unacknowledged replies of all long-poll sessions of a worker. Above it, the session that has ' +
      'acknowledged nothing for longest closes with 3008. Halley only.',
    { unit: 'bytes', min: 1048576, max: 2147483647 },
  ),
  string(
    'emulation.handler_prefix',
    '/emulation',
    'Path to which clients of HTTP streaming and SSE post their commands.',
    { prefix: true },
  ),
  bodyLimit('emulation'),

  ...endpoint('uni_websocket', 'WebSocket for clients that only receive', '/connection/uni_websocket'),
  int(
    'uni_websocket.message_size_limit',
    65536,
    'Maximum size of a connect request; larger ones close with 1009.',
    BODY,
  ),
  bool('uni_websocket.join_push_messages', 'Send queued pushes as one frame, separated by line feeds.'),
  bool('uni_websocket.disable_disconnect_push', 'Send no disconnect push before the close frame.'),
  ...endpoint('uni_sse', 'server-sent events for clients that only receive', '/connection/uni_sse'),
  bodyLimit('uni_sse'),
  ...httpResponses('uni_sse'),
  ...endpoint(
    'uni_http_stream',
    'HTTP streaming for clients that only receive',
    '/connection/uni_http_stream',
  ),
  bodyLimit('uni_http_stream'),
  ...httpResponses('uni_http_stream'),
  ...endpoint(
    'uni_poll',
    `one-way long-poll without sessions. ${HALLEY_ONLY}`.replace(/\.$/, ''),
    '/connection/uni_poll',
  ),
  bodyLimit('uni_poll'),
  duration(
    'uni_poll.timeout',
    '25s',
    `Time a poll waits for data if its request has no timeout. ${HALLEY_ONLY}`,
    { max: 300_000 },
  ),
  duration(
    'uni_poll.max_timeout',
    '60s',
    `Maximum timeout of a poll; longer ones are shortened. ${HALLEY_ONLY}`,
    { max: 300_000 },
  ),
  string(
    'uni_poll.cursor_secret_key',
    '',
    'Key that signs cursors. Empty: derived from the token secret or the API key, else generated at each start. Halley only.',
    { secret: true, change: 'live' },
  ),
])
