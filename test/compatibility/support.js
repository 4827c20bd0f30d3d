import { ProtobufClient } from '../clients/transport/protobuf-client.js'
import { RawClient } from '../kit/raw-client.js'

/** Payloads of commands are bytes in Protobuf. @param {[string, any]} field @returns {[string, any]} */
const toProtobuf = ([name, request]) => {
  const { data } = request
  if (data === undefined || Buffer.isBuffer(data)) return [name, request]
  return [name, { ...request, data: Buffer.from(JSON.stringify(data)) }]
}

/** @param {any} value @returns {any} in the form of JSON; bytes that are not JSON stay bytes */
function fromProtobuf(value) {
  if (Buffer.isBuffer(value)) {
    try {
      return JSON.parse(value.toString())
    } catch {
      return value
    }
  }
  if (Array.isArray(value)) return value.map(fromProtobuf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, fromProtobuf(field)]))
}

/** A Protobuf client with the commands and messages of a JSON client. */
class ConvertingClient extends ProtobufClient {
  /** @param {any[]} messages */
  received(messages) {
    super.received(messages.map(fromProtobuf))
  }

  /** @param {...object} commands */
  send(...commands) {
    super.send(...commands.map(command => Object.fromEntries(Object.entries(command).map(toProtobuf))))
  }
}

/** @param {RawClient | ProtobufClient} client @param {any} t ends it */
function endsWith(client, t) {
  t.teardown(() => client.socket.terminate())
  return client
}

/** How a client of each codec connects. It is closed at the end of the test. */
export const codecs = {
  /** @param {any} t @param {{ws: string}} gateway @param {object} [request] */
  json: async (t, { ws }, request) => endsWith(await RawClient.connected(ws, request), t),
  /** @param {any} t @param {{ws: string}} gateway @param {object} [request] */
  protobuf: async (t, { ws }, request) =>
    endsWith(await ProtobufClient.connected(ws, request, ConvertingClient), t),
}
