import { WireReader } from './wire.js'

/**
 * Reads an EmulationRequest in Protobuf (client protocol, sections 3 and 16.3).
 * @param {Buffer} body
 * @returns {{node: string, session: string, data: Buffer} | undefined} undefined if it is none; `data` is a part of `body`
 */
export function readEmulationRequest(body) {
  if (body.length === 0) return undefined
  /** @type {{node: string, session: string, data: Buffer}} */
  const request = { node: '', session: '', data: Buffer.alloc(0) }
  const reader = new WireReader(body)
  try {
    while (!reader.done) {
      const tag = reader.tag()
      if (tag === 0x0a) request.node = reader.text()
      else if (tag === 0x12) request.session = reader.text()
      else if (tag === 0x1a) request.data = reader.bytes()
      else reader.skip(tag & 7)
    }
  } catch {
    return undefined
  }
  return request
}
