// A real backend of gRPC event proxies: a server of the proto files in src/backends/hooks/proto, read by protobufjs and not by
// our code. It records the requests, and answers as a test says.

import { readFileSync } from 'node:fs'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { until } from '../../kit/wait.js'

const root = new protobuf.Root()
for (const file of ['proxy.proto', 'notices.proto']) {
  const text = readFileSync(new URL(`../../../src/backends/hooks/proto/${file}`, import.meta.url), 'utf8')
  protobuf.parse(text, root, { keepCase: true })
}

/** Methods -> events. */
const EVENTS = {
  'centrifugal.centrifugo.proxy.CentrifugoProxy': {
    Connect: 'connect',
    Refresh: 'refresh',
    Subscribe: 'subscribe',
    Publish: 'publish',
    RPC: 'rpc',
    SubRefresh: 'sub_refresh',
    MapPublish: 'map_publish',
    MapRemove: 'map_remove',
    SharedPollRefresh: 'shared_poll_refresh',
    NotifyCacheEmpty: 'cache_empty',
    NotifyChannelState: 'state',
  },
  'halley.proxy.HalleyNotices': { Disconnected: 'disconnected', Unsubscribed: 'unsubscribed' },
}

/** Fields that hold JSON text. */
const JSON_FIELDS = ['data', 'info', 'meta', 'stream_data']

/** @typedef {{event: string, message: any, fields: any, metadata: import('@grpc/grpc-js').Metadata, call: any,
 *   aborted: Promise<void>}} Request `message`: as on the wire; `fields`: as a backend over HTTP sees them
 * @typedef {any} Reply result, error, disconnect; a Buffer: bytes of the answer; an object with `code`: a status; null:
 *   never */

/** @param {any} value an object of JSON @returns {any} the message for protobufjs */
function toMessage(value) {
  if (Array.isArray(value)) return value.map(toMessage)
  if (typeof value !== 'object' || value === null) return value ?? undefined
  const entries = Object.entries(value).map(([name, field]) =>
    JSON_FIELDS.includes(name)
      ? [name, Buffer.isBuffer(field) ? field : Buffer.from(JSON.stringify(field))]
      : [name, toMessage(field ?? {})],
  )
  return Object.fromEntries(entries)
}

function toFields(type, message) {
  const fields = type.toObject(message, { defaults: true, longs: Number })
  for (const name of JSON_FIELDS) {
    if (name in fields)
      fields[name] = fields[name].length === 0 ? undefined : JSON.parse(String(fields[name]))
    if (fields[name] === undefined) delete fields[name]
  }
  return fields
}

export class GrpcBackend {
  /** @type {Request[]} */
  requests = []
  /** @type {(request: Request) => Reply | Promise<Reply>} */
  answer = () => ({})
  url = ''
  #server

  constructor(options) {
    this.#server = new Server(options)
    for (const [name, methods] of Object.entries(EVENTS)) {
      const definition = /** @type {any} */ ({})
      const handlers = /** @type {any} */ ({})
      for (const [method, event] of Object.entries(methods)) {
        const { requestType, responseType } = root.lookupService(name).methods[method]
        const [request, response] = [requestType, responseType].map(type =>
          root.lookupType(`${namespaceOf(name)}.${type}`),
        )
        definition[method] = {
          path: `/${name}/${method}`,
          requestStream: false,
          responseStream: false,
          requestSerialize: same,
          requestDeserialize: bytes => request.decode(bytes),
          responseSerialize: reply =>
            Buffer.isBuffer(reply) ? reply : response.encode(response.fromObject(toMessage(reply))).finish(),
          responseDeserialize: same,
        }
        handlers[method] = (call, done) => this.#receive(event, request, call, done)
      }
      this.#server.addService(definition, handlers)
    }
  }

  /** @param {import('tap').Test} t @param {any} [settings] credentials, address, options of the server */
  static async start(t, settings = {}) {
    const { credentials = ServerCredentials.createInsecure(), address = '127.0.0.1:0', options } = settings
    const backend = new GrpcBackend(options)
    const port = await new Promise((resolve, reject) =>
      backend.#server.bindAsync(address, credentials, (error, port) =>
        error ? reject(error) : resolve(port),
      ),
    )
    t.teardown(() => backend.stop())
    backend.port = port
    backend.url = `grpc://127.0.0.1:${port}`
    return backend
  }

  port = 0

  stop() {
    this.#server.forceShutdown()
  }

  async #receive(event, type, call, done) {
    /** @type {Request} */
    const request = {
      event,
      message: type.toObject(call.request),
      fields: toFields(type, call.request),
      metadata: call.metadata,
      call,
      aborted: new Promise(resolve => call.once('cancelled', resolve)),
    }
    this.requests.push(request)
    const reply = await this.answer(request)
    if (reply === null) return
    if ('code' in reply) done(reply)
    else done(null, reply)
  }

  /** @param {(request: Request) => boolean} matches @returns {Promise<Request>} the first match, past or future */
  request(matches) {
    return until(() => this.requests.find(matches))
  }
}

const same = value => value

const namespaceOf = service => service.slice(0, service.lastIndexOf('.'))
