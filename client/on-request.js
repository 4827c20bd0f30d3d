// Answers requests of the gateway (docs/access.md) with handlers of the page, for the SDK `centrifuge` in JSON and
// Protobuf. No imports: pages load this file directly.

const ACK = '$ack'
const METHOD = '$method'
const NOT_FOUND = { code: 104, message: 'method not found' }

/**
 * @typedef {object} ClientRequest
 * @property {string} id
 * @property {string} method '' of a publication that only has to be confirmed
 * @property {string} [channel] of the publication, if the request was sent to a channel
 *
 * @callback RequestHandler answers with a JSON value or bytes. If it throws, the backend gets `code` and `message` of the
 *   error
 * @param {any} data
 * @param {ClientRequest} request
 * @returns {any} the answer, or a promise of it
 *
 * @typedef {object} RequestOptions
 * @property {(error: any, request: ClientRequest) => void} [onError] called if the gateway refuses an answer: it was too
 *   late (104), or larger than 64 KB (107)
 *
 * The used part of the SDK's `Centrifuge`.
 * @typedef {object} RequestClient
 * @property {(event: any, listener: any) => unknown} on
 * @property {(event: any, listener: any) => unknown} off
 * @property {(method: string, data: any) => Promise<unknown>} rpc
 * @property {() => Record<string, {on: (event: any, listener: any) => unknown,
 *   off: (event: any, listener: any) => unknown}>} subscriptions
 * @property {(channel: string, options?: any) => any} newSubscription
 */

/**
 * Answers requests: messages to this client, and publications in its subscriptions, present and future ones.
 * @param {RequestClient} client `new Centrifuge(...)`, connected or not. Its `newSubscription` is wrapped
 * @param {Record<string, RequestHandler>} handlers by method. The one of `''` gets publications that only have to be
 *   confirmed; without it they are confirmed at once
 * @param {RequestOptions} [options]
 * @returns {() => void} stops answering
 */
export function onRequest(client, handlers, { onError = () => {} } = {}) {
  let stopped = false

  /** @param {ClientRequest} request @param {unknown} data @param {boolean} binary the client uses Protobuf */
  const answer = async (request, data, binary) => {
    if (stopped) return
    const reply = await replyOf(handlers, request, data)
    try {
      await client.rpc(ACK, binary ? new TextEncoder().encode(JSON.stringify(reply)) : reply)
    } catch (error) {
      onError(error, request)
    }
  }

  const onMessage = (/** @type {{data: unknown}} */ { data }) => {
    const binary = isBytes(data)
    const request = (binary ? parse(data) : /** @type {any} */ (data))?.$req
    if (typeof request?.id !== 'string') return
    const { id, method = '', b64data } = request
    answer({ id, method }, b64data === undefined ? request.data : fromBase64(b64data), binary)
  }

  const onPublication = (
    /** @type {{channel: string, data: unknown, tags?: any}} */ { channel, data, tags },
  ) => {
    if (typeof tags?.[ACK] !== 'string') return
    const binary = isBytes(data)
    const request = { id: tags[ACK], method: tags[METHOD] ?? '', channel }
    answer(request, binary ? (parse(data) ?? data) : data, binary)
  }

  const { newSubscription } = client
  const wrapped = Object.hasOwn(client, 'newSubscription')
  const withRequests = (/** @type {[string, any?]} */ ...args) => {
    const subscription = newSubscription.apply(client, args)
    if (!stopped) subscription.on('publication', onPublication)
    return subscription
  }
  client.newSubscription = withRequests
  client.on('message', onMessage)
  client.on('publication', onPublication)
  for (const subscription of Object.values(client.subscriptions()))
    subscription.on('publication', onPublication)

  return () => {
    stopped = true
    client.off('message', onMessage)
    client.off('publication', onPublication)
    for (const subscription of Object.values(client.subscriptions()))
      subscription.off('publication', onPublication)
    // Unless somebody else has wrapped it since.
    if (client.newSubscription !== withRequests) return
    if (wrapped) client.newSubscription = newSubscription
    else Reflect.deleteProperty(client, 'newSubscription')
  }
}

/** @param {Record<string, RequestHandler>} handlers @param {ClientRequest} request @param {unknown} data */
async function replyOf(handlers, request, data) {
  const { id, method } = request
  try {
    if (!Object.hasOwn(handlers, method)) {
      if (method !== '') throw NOT_FOUND
      return { id }
    }
    const value = await handlers[method](data, request)
    const reply = isBytes(value) ? { id, b64data: toBase64(value) } : { id, data: value }
    // A value without JSON text fails here.
    JSON.stringify(reply)
    return reply
  } catch (error) {
    const { code, message } = error ?? {}
    return { id, error: { code: Number.isSafeInteger(code) ? code : 0, message: String(message ?? error) } }
  }
}

/** @param {unknown} value @returns {value is Uint8Array | ArrayBuffer} */
const isBytes = value => value instanceof Uint8Array || value instanceof ArrayBuffer

/** @param {Uint8Array | ArrayBuffer} bytes @returns {any} undefined: not JSON */
function parse(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}

/** @param {Uint8Array | ArrayBuffer} bytes */
function toBase64(bytes) {
  let text = ''
  for (const byte of new Uint8Array(bytes)) text += String.fromCharCode(byte)
  return btoa(text)
}

/** @param {string} text */
const fromBase64 = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0))
