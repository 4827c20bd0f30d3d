// halley-gateway/client: helpers for the SDKs, in browsers and in Node.js.

export { LongPollSocket } from './long-poll-socket.js'
export { onRequest } from './on-request.js'

/**
 * @typedef {import('./on-request.js').ClientRequest} ClientRequest
 * @typedef {import('./on-request.js').RequestHandler} RequestHandler
 * @typedef {import('./on-request.js').RequestOptions} RequestOptions
 */
