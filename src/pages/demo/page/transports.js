// The transports of this page. The gateway lists the enabled ones in the page.

import { make } from '../../web/dom.js'

/** @typedef {{count: number, bytes: number}} Traffic received frames, events, chunks or responses */
/** @typedef {(traffic: Traffic) => import('centrifuge').Centrifuge} MakeClient counts received data */

/** @typedef {ReturnType<typeof row>} Transport */

const { host, origin, protocol } = location
const {
  websocket = '',
  httpStream = '',
  sse = '',
  poll = '',
  emulation = '',
} = document.documentElement.dataset
const socketOrigin = `${protocol === 'https:' ? 'wss' : 'ws'}://${host}`
const encoder = new TextEncoder()

/** @param {Traffic} traffic @param {unknown} data */
function add(traffic, data) {
  traffic.count++
  if (typeof data === 'string') traffic.bytes += encoder.encode(data).length
  else if (data instanceof ArrayBuffer || data instanceof Uint8Array) traffic.bytes += data.byteLength
}

/** @template {new (...args: any[]) => EventTarget} S @param {S} Source @param {Traffic} traffic @returns {S} */
const counted = (Source, traffic) =>
  class extends Source {
    /** @param {any[]} args */
    constructor(...args) {
      super(...args)
      this.addEventListener('message', (/** @type {any} */ { data }) => add(traffic, data))
    }
  }

/** @param {Traffic} traffic @returns {typeof fetch} counts response chunks */
const countedFetch = traffic => async (url, options) => {
  const response = await fetch(url, options)
  const { body, status, headers } = response
  // In some browsers a response without content has a body but cannot be constructed with one.
  if (!body || status !== 200) return response
  const count = new TransformStream({
    transform(chunk, controller) {
      add(traffic, chunk)
      controller.enqueue(chunk)
    },
  })
  return new Response(body.pipeThrough(count), { status, headers })
}

const jsonSdk = globalThis.Centrifuge

/** Both builds of the SDK use the same global name. */
async function loadProtobufSdk() {
  const script = /** @type {HTMLScriptElement} */ (make('script'))
  script.src = '/demo/centrifuge.protobuf.js'
  try {
    await new Promise((resolve, reject) => {
      script.onload = resolve
      script.onerror = () => reject(new Error('its codec could not be loaded'))
      document.head.append(script)
    })
    return globalThis.Centrifuge
  } finally {
    globalThis.Centrifuge = jsonSdk
    script.remove()
  }
}

/** @param {string} path @param {typeof jsonSdk} Sdk @param {any} [Socket] @returns {MakeClient} */
const overSocket =
  (path, Sdk, Socket = WebSocket) =>
  traffic =>
    new Sdk(socketOrigin + path, { websocket: counted(Socket, traffic) })

/** @param {'http_stream' | 'sse'} transport @param {string} path @returns {MakeClient} */
const overHttp = (transport, path) => traffic =>
  new jsonSdk([{ transport, endpoint: origin + path }], {
    emulationEndpoint: origin + emulation,
    fetch: countedFetch(traffic),
    eventsource: counted(EventSource, traffic),
  })

/**
 * @param {string} id in the page URL
 * @param {string} name
 * @param {string} how one line
 * @param {string} unit of received data, plural
 * @param {string} endpoint path; '' if disabled
 * @param {() => Promise<MakeClient>} load
 */
const row = (id, name, how, unit, endpoint, load) => {
  const codec = id === 'protobuf' ? 'Protobuf' : 'JSON'
  return { id, name, codec, how, unit, endpoint, load }
}

/** Enabled transports. */
export const transports = [
  row('websocket', 'WebSocket', 'One socket, both ways.', 'Frames', websocket, async () =>
    overSocket(websocket, jsonSdk),
  ),
  row('protobuf', 'WebSocket', 'The same in binary frames.', 'Frames', websocket, async () =>
    overSocket(websocket, await loadProtobufSdk()),
  ),
  row('http-stream', 'HTTP streaming', 'An endless response, and POSTs.', 'Chunks', httpStream, async () =>
    overHttp('http_stream', httpStream),
  ),
  row('sse', 'Server-sent events', 'An EventSource, and POSTs.', 'Events', sse, async () =>
    overHttp('sse', sse),
  ),
  row('poll', 'Long-poll', 'Plain requests, where everything else is blocked.', 'Answers', poll, async () =>
    overSocket(poll, jsonSdk, (await import('./long-poll-socket.js')).LongPollSocket),
  ),
].filter(({ endpoint }) => endpoint !== '')

const PARAMETER = 'transport'

/** The one named in the page URL, or the first. @returns {Transport | undefined} */
export function readTransport() {
  const named = new URLSearchParams(location.search).get(PARAMETER)
  return transports.find(({ id }) => id === named) ?? transports[0]
}

/** Writes the transport into the URL, for a reload. @param {Transport} transport */
export function keepTransport({ id }) {
  const url = new URL(location.href)
  if (id === transports[0].id) url.searchParams.delete(PARAMETER)
  else url.searchParams.set(PARAMETER, id)
  history.replaceState(null, '', url)
}
