// The transports of this page. The gateway writes the enabled ones into the page.

import { make } from '../../web/dom.js'

/** @typedef {{count: number, bytes: number}} Traffic received frames, events, chunks or responses */
/** @typedef {(traffic: Traffic) => import('centrifuge').Centrifuge} MakeClient counts what its client receives */

/**
 * @typedef {object} Transport
 * @property {string} id in the address of the page
 * @property {string} name
 * @property {'JSON' | 'Protobuf'} codec
 * @property {string} how how it works, one line
 * @property {string} unit of received data, plural
 * @property {string} endpoint path; '' if disabled
 * @property {() => Promise<MakeClient>} load loads its code
 */

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

/**
 * @template {new (...args: any[]) => EventTarget} Source a WebSocket, an EventSource, or a class of that shape
 * @param {Source} Source
 * @param {Traffic} traffic
 * @returns {Source} counts its messages
 */
const counted = (Source, traffic) =>
  class extends Source {
    /** @param {any[]} args */
    constructor(...args) {
      super(...args)
      this.addEventListener('message', (/** @type {any} */ { data }) => add(traffic, data))
    }
  }

/** @param {Traffic} traffic @returns {typeof fetch} counts the chunks of its responses */
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

/**
 * @param {string} path
 * @param {typeof jsonSdk} Sdk
 * @param {any} [Socket]
 * @returns {MakeClient}
 */
const overSocket =
  (path, Sdk, Socket = WebSocket) =>
  traffic =>
    new Sdk(socketOrigin + path, { websocket: counted(Socket, traffic) })

/**
 * @param {'http_stream' | 'sse'} transport
 * @param {string} path
 * @returns {MakeClient} sends over the emulation endpoint
 */
const overHttp = (transport, path) => traffic =>
  new jsonSdk([{ transport, endpoint: origin + path }], {
    emulationEndpoint: origin + emulation,
    fetch: countedFetch(traffic),
    eventsource: counted(EventSource, traffic),
  })

/** @type {readonly Transport[]} */
const all = [
  {
    id: 'websocket',
    name: 'WebSocket',
    codec: 'JSON',
    how: 'One socket, both ways.',
    unit: 'Frames',
    endpoint: websocket,
    load: async () => overSocket(websocket, jsonSdk),
  },
  {
    id: 'protobuf',
    name: 'WebSocket',
    codec: 'Protobuf',
    how: 'The same in binary frames.',
    unit: 'Frames',
    endpoint: websocket,
    load: async () => overSocket(websocket, await loadProtobufSdk()),
  },
  {
    id: 'http-stream',
    name: 'HTTP streaming',
    codec: 'JSON',
    how: 'An endless response, and POSTs.',
    unit: 'Chunks',
    endpoint: httpStream,
    load: async () => overHttp('http_stream', httpStream),
  },
  {
    id: 'sse',
    name: 'Server-sent events',
    codec: 'JSON',
    how: 'An EventSource, and POSTs.',
    unit: 'Events',
    endpoint: sse,
    load: async () => overHttp('sse', sse),
  },
  {
    id: 'poll',
    name: 'Long-poll',
    codec: 'JSON',
    how: 'Plain requests, where nothing else gets through.',
    unit: 'Answers',
    endpoint: poll,
    load: async () => overSocket(poll, jsonSdk, (await import('./long-poll-socket.js')).LongPollSocket),
  },
]

/** Enabled transports. */
export const transports = all.filter(({ endpoint }) => endpoint !== '')

const PARAMETER = 'transport'

/** The one named in the page's address, or the first. @returns {Transport | undefined} */
export function readTransport() {
  const named = new URLSearchParams(location.search).get(PARAMETER)
  return transports.find(({ id }) => id === named) ?? transports[0]
}

/** Writes the transport into the address, for a reload. @param {Transport} transport */
export function keepTransport({ id }) {
  const url = new URL(location.href)
  if (id === transports[0].id) url.searchParams.delete(PARAMETER)
  else url.searchParams.set(PARAMETER, id)
  history.replaceState(null, '', url)
}
