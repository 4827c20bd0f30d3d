// Clients of both codecs with one face: what they say and hear is told in the JSON form.

import { ProtobufClient } from '../clients/transport/protobuf-client.js'
import { RawClient } from '../kit/raw-client.js'

/** Payloads of commands are bytes in Protobuf. @param {any} fields */
const toProtobuf = fields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      name === 'data' && !Buffer.isBuffer(value) ? Buffer.from(JSON.stringify(value)) : value,
    ]),
  )

/** A list that is empty was not on the wire. @param {any} value */
function fromProtobuf(value) {
  if (Buffer.isBuffer(value)) return JSON.parse(value.toString())
  if (Array.isArray(value)) return value.map(fromProtobuf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, fromProtobuf(field)]))
}

/** The codecs by name, and how a client of each connects. */
export const codecs = Object.freeze({
  json: {
    /** @param {any} t @param {any} gateway @param {object} [request] */
    async client(t, gateway, request = {}) {
      const client = await RawClient.connected(gateway.ws, request)
      t.teardown(() => client.socket.terminate())
      return {
        raw: client,
        closed: client.closed,
        connect: client.connect,
        call: (/** @type {string} */ method, request = {}) => client.call(method, request),
        push: (/** @type {string} */ type) => client.push(type),
      }
    },
  },
  protobuf: {
    /** @param {any} t @param {any} gateway @param {object} [request] */
    async client(t, gateway, request = {}) {
      const client = await ProtobufClient.connected(gateway.ws, request)
      t.teardown(() => client.socket.terminate())
      return {
        raw: client,
        closed: client.closed,
        connect: fromProtobuf(client.connect),
        call: async (/** @type {string} */ method, request = {}) =>
          fromProtobuf(await client.call(method, toProtobuf(request))),
        push: async (/** @type {string} */ type) => fromProtobuf(await client.push(type)),
      }
    },
  },
})
