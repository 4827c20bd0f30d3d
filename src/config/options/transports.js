import { bool, duration, int, newWorkers, string, transforms } from './make.js'

const BODY = { unit: 'bytes', min: 1, max: 1073741823 }

/** @param {string} what @param {string} path */
const endpoint = (what, path) => ({
  enabled: bool(`Serve ${what}.`),
  handler_prefix: string('Path of the endpoint.', { default: path, prefix: true }),
})

const bodyLimit = int(65536, 'Maximum size of a request body; larger ones get 413.', BODY)

const httpResponses = {
  enabled: bool('Answer a failed connect with an HTTP status instead of a stream with a disconnect push.'),
  transforms: transforms(
    'HTTP status and body for each error or disconnect code. Codes not listed get 500. An empty body is replaced by the reason.',
    {
      status_code: { type: 'integer', minimum: 200, maximum: 599 },
      body: { type: 'string', default: '' },
    },
  ),
}

export const transportOptions = newWorkers({
  websocket: {
    disabled: bool('Disable the WebSocket endpoint.'),
    handler_prefix: string('Path of the WebSocket endpoint.', {
      default: '/connection/websocket',
      prefix: true,
    }),
    message_size_limit: int(
      65536,
      'Maximum size of a message from a client; larger ones close with 1009. `uws` reads, and keeps, up to four times ' +
        'the size of a message; a larger one ends the connection without a close frame.',
      BODY,
    ),
    compression: bool('Offer permessage-deflate (without context takeover). It costs CPU and memory.'),
    compression_min_size: int(0, 'Messages shorter than this are sent uncompressed.', {
      unit: 'bytes',
    }),
    compression_level: int(1, 'Compression level of the `node` driver, 1 to 9. `uws` has a fixed one.', {
      min: 1,
      max: 9,
    }),
  },
  http_stream: {
    ...endpoint('HTTP streaming, two-way with the emulation endpoint', '/connection/http_stream'),
    max_request_body_size: bodyLimit,
  },
  sse: {
    ...endpoint('server-sent events, two-way with the emulation endpoint', '/connection/sse'),
    max_request_body_size: bodyLimit,
  },
  poll: {
    ...endpoint('two-way long-poll, for `LongPollSocket`. Halley only', '/connection/poll'),
    max_request_body_size: bodyLimit,
    timeout: duration('25s', 'Maximum time a poll waits for data. Halley only.', { max: 300_000 }),
    session_timeout: duration(
      '30s',
      'A long-poll session ends after this time without a pending poll. Halley only.',
      { max: 3_600_000 },
    ),
    replies_max_size: int(
      67108864,
      'Maximum unacknowledged replies of all long-poll sessions of a worker. Above it, the session with ' +
        'the longest time since its last acknowledgement is closed with 3008. Halley only.',
      { unit: 'bytes', min: 1048576, max: 2147483647 },
    ),
  },
  emulation: {
    handler_prefix: string('Path to which clients of HTTP streaming and SSE post their commands.', {
      default: '/emulation',
      prefix: true,
    }),
    max_request_body_size: bodyLimit,
  },
  uni_websocket: {
    ...endpoint('WebSocket for clients that only receive', '/connection/uni_websocket'),
    message_size_limit: int(65536, 'Maximum size of a connect request; larger ones close with 1009.', BODY),
    join_push_messages: bool('Send queued pushes as one frame, separated by line feeds.'),
    disable_disconnect_push: bool('Send no disconnect push before the close frame.'),
  },
  uni_sse: {
    ...endpoint('server-sent events for clients that only receive', '/connection/uni_sse'),
    max_request_body_size: bodyLimit,
    connect_code_to_http_response: httpResponses,
  },
  uni_http_stream: {
    ...endpoint('HTTP streaming for clients that only receive', '/connection/uni_http_stream'),
    max_request_body_size: bodyLimit,
    connect_code_to_http_response: httpResponses,
  },
  uni_poll: {
    ...endpoint('one-way long-poll without sessions. Halley only', '/connection/uni_poll'),
    max_request_body_size: bodyLimit,
    timeout: duration('25s', 'Time a poll waits for data if its request has no timeout. Halley only.', {
      max: 300_000,
    }),
    max_timeout: duration('60s', 'Maximum timeout of a poll; longer ones are shortened. Halley only.', {
      max: 300_000,
    }),
    cursor_secret_key: string(
      'Key that signs cursors. Empty: derived from the token secret or the API key, else generated at each start. Halley only.',
      { secret: true, change: 'live' },
    ),
  },
})
