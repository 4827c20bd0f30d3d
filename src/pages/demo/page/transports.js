// The transports of this page. The gateway writes the enabled ones into the page.

import { make } from './dom.js'

/** @import { Meter } from './meter.js' */

/** @typedef {typeof import('centrifuge').Centrifuge} Sdk */

/**
 * @typedef {object} Transport
 * @property {string} id in the address of the page
 * @property {string} name
 * @property {'JSON' | 'Protobuf'} codec
 * @property {string} how how it works, one line
 * @property {string} unit of received data, plural
 * @property {string} endpoint path; '' if disabled
 * @property {() => Promise<(meter: Meter) => import('centrifuge').Centrifuge>} load loads its code once
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
const emulationEndpoint = origin + emulation

/**
 * Caches a load, but not a failure: it is retried.
 * @template T
 * @param {() => Promise<T>} load @returns {() => Promise<T>}
 */
function once(load) {
  /** @type {Promise<T> | undefined} */
  let loading
  return () => {
    loading ??= load().catch(error => {
      loading = undefined
      throw error
    })
    return loading
  }
}

const loadJsonSdk = async () => globalThis.Centrifuge

// Both builds of the SDK use the same global name.
const loadProtobufSdk = once(async () => {
  const json = globalThis.Centrifuge
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
    globalThis.Centrifuge = json
    script.remove()
  }
})

const loadPollSocket = once(async () => (await import('./long-poll-socket.js')).LongPollSocket)

/** @param {() => Promise<Sdk>} loadSdk */
const overWebSocket = loadSdk => async () => {
  const Sdk = await loadSdk()
  return (/** @type {Meter} */ meter) =>
    new Sdk(socketOrigin + websocket, { websocket: meter.counted(WebSocket) })
}

/** @type {readonly Transport[]} */
const all = Object.freeze([
  {
    id: 'websocket',
    name: 'WebSocket',
    codec: 'JSON',
    how: 'One socket, both ways.',
    unit: 'Frames',
    endpoint: websocket,
    load: overWebSocket(loadJsonSdk),
  },
  {
    id: 'protobuf',
    name: 'WebSocket',
    codec: 'Protobuf',
    how: 'The same in binary frames.',
    unit: 'Frames',
    endpoint: websocket,
    load: overWebSocket(loadProtobufSdk),
  },
  {
    id: 'http-stream',
    name: 'HTTP streaming',
    codec: 'JSON',
    how: 'An endless response, and POSTs.',
    unit: 'Chunks',
    endpoint: httpStream,
    load: async () => meter =>
      new Centrifuge([{ transport: 'http_stream', endpoint: origin + httpStream }], {
        emulationEndpoint,
        fetch: meter.fetch,
      }),
  },
  {
    id: 'sse',
    name: 'Server-sent events',
    codec: 'JSON',
    how: 'An EventSource, and POSTs.',
    unit: 'Events',
    endpoint: sse,
    load: async () => meter =>
      new Centrifuge([{ transport: 'sse', endpoint: origin + sse }], {
        emulationEndpoint,
        eventsource: meter.counted(EventSource),
      }),
  },
  {
    id: 'poll',
    name: 'Long-poll',
    codec: 'JSON',
    how: 'Plain requests, where nothing else gets through.',
    unit: 'Answers',
    endpoint: poll,
    load: async () => {
      const LongPollSocket = await loadPollSocket()
      return meter => new Centrifuge(socketOrigin + poll, { websocket: meter.counted(LongPollSocket) })
    },
  },
])

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
