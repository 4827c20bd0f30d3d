import { bool, duration, int, string, transforms } from './make.js'

const BODY = { unit: 'bytes', min: 1, max: 1073741823 }
const HALLEY_ONLY = 'Halley only.'

/** @param {string} block @param {string} what @param {string} path */
const endpoint = (block, what, path) => [
  bool(`${block}.enabled`, `Serve ${what}.`),
  string(`${block}.handler_prefix`, path, 'Path of the endpoint.', { prefix: true }),
]

/** @param {string} block */
const bodyLimit = block =>
  int(`${block}.max_request_body_size`, 65536, 'Longest request body; longer ones get 413.', BODY)

/** @param {string} block */
const httpResponses = block => [
  bool(
    `${block}.connect_code_to_http_response.enabled`,
    'A connect that fails is answered with an HTTP status instead of a stream that ends with a disconnect push.',
  ),
  transforms(
    `${block}.connect_code_to_http_response.transforms`,
    'Status and body for error and disconnect codes; a code that is not named gets 500, an empty body the reason.',
    {
      status_code: { type: 'integer', minimum: 200, maximum: 599 },
      body: { type: 'string', default: '' },
    },
  ),
]

export const transportOptions = [
  bool('websocket.disabled', 'Switch the WebSocket endpoint off.'),
  string('websocket.handler_prefix', '/connection/websocket', 'Path of the WebSocket endpoint.', {
    prefix: true,
  }),
  int(
    'websocket.message_size_limit',
    65536,
    'Longest message taken from a client; longer ones close with 1009.',
    BODY,
  ),
  bool(
    'websocket.compression',
    'Offer permessage-deflate (without context takeover). It costs CPU and memory.',
  ),
  int('websocket.compression_min_size', 0, 'Messages shorter than this go out uncompressed.', {
    unit: 'bytes',
  }),
  int('websocket.compression_level', 1, 'Effort of the `node` driver, 1 to 9; `uws` has one of its own.', {
    min: 1,
    max: 9,
  }),

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
  duration('poll.timeout', '25s', `Longest time a poll waits for something to send. ${HALLEY_ONLY}`, {
    max: 300_000,
  }),
  duration(
    'poll.session_timeout',
    '30s',
    `Time without a poll under way after which a long-poll session ends. ${HALLEY_ONLY}`,
    { max: 3_600_000 },
  ),
  string('emulation.handler_prefix', '/emulation', 'Path where the clients of these post their commands.', {
    prefix: true,
  }),
  bodyLimit('emulation'),

  ...endpoint('uni_websocket', 'WebSocket for clients that only receive', '/connection/uni_websocket'),
  int(
    'uni_websocket.message_size_limit',
    65536,
    'Longest connect request; longer ones close with 1009.',
    BODY,
  ),
  bool(
    'uni_websocket.join_push_messages',
    'Pushes that wait together go out as one frame, joined with line feeds.',
  ),
  bool('uni_websocket.disable_disconnect_push', 'Only the close frame tells why a connection ends.'),
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
  duration('uni_poll.timeout', '25s', `Time a poll waits when it names none. ${HALLEY_ONLY}`, {
    max: 300_000,
  }),
  duration('uni_poll.max_timeout', '60s', `Longest time a poll may ask for. ${HALLEY_ONLY}`, {
    max: 300_000,
  }),
  string(
    'uni_poll.cursor_secret_key',
    '',
    'Signs cursors. Empty: derived from the token secret or the API key, else made anew at each start. Halley only.',
    { secret: true },
  ),
]
