import protobuf from 'protobufjs/minimal.js'

/**
 * Reads an EmulationRequest in Protobuf (client protocol, sections 3 and 16.3).
 * @param {Buffer} body
 * @returns {{node: string, session: string, data: Uint8Array} | undefined} undefined if it is none; `data` is a part of `body`
 */
export function readEmulationRequest(body) {
  if (body.length === 0) return undefined
  /** @type {{node: string, session: string, data: Uint8Array}} */
  const request = { node: '', session: '', data: new Uint8Array(0) }
  try {
    const reader = protobuf.Reader.create(body)
    while (reader.pos < reader.len) {
      const tag = reader.uint32()
      if (tag === 0x0a) request.node = reader.string()
      else if (tag === 0x12) request.session = reader.string()
      else if (tag === 0x1a) request.data = reader.bytes()
      else reader.skipType(tag & 7)
    }
  } catch {
    return undefined
  }
  return request
}
