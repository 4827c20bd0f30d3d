/**
 * The answer to a POST.
 *
 * @typedef {object} Answer
 * @property {number} status
 * @property {import('../../protocol/contract.js').Encoded} body messages, or a line that says what was wrong
 * @property {number} seq number of the last message in the body, -1: none of the session's messages are meant
 * @property {boolean} binary whether the messages are Protobuf
 * @property {{code: number, reason: string} | null} farewell the session has ended with this, behind the messages
 */

/**
 * @param {number} status
 * @param {string} line
 * @returns {Readonly<Answer>}
 */
const refusal = (status, line) =>
  Object.freeze({ status, body: line, seq: -1, binary: false, farewell: null })

export const answers = Object.freeze({
  taken: refusal(204, ''),
  unknown: refusal(404, 'unknown session'),
  ended: refusal(404, 'the session has ended'),
  tooHigh: refusal(400, 'ack is the number of no message that was sent'),
  tooLow: refusal(409, 'a later message has been acknowledged before'),
  gap: refusal(409, 'there is a gap before this number of send'),
  empty: refusal(400, 'the body has no commands'),
  tooLong: refusal(413, 'the body is too long'),
  full: refusal(503, 'too many connections'),
  noBroker: refusal(503, 'the session is out of reach'),
})

/** @param {string} line */
export const badRequest = line => refusal(400, line)

const HEAD = 2 + 1 + 8 + 2 + 1

/**
 * An answer on its way to the worker that holds the client's request.
 *
 *   u16 status | u8 binary | f64 seq | u16 close code, 0 = none | u8 length of the reason | reason | body
 *
 * @param {Answer} answer
 * @returns {Buffer}
 */
export function encodeAnswer({ status, body, seq, binary, farewell }) {
  const reason = Buffer.from(farewell?.reason ?? '').subarray(0, 255)
  const head = Buffer.alloc(HEAD)
  head.writeUInt16LE(status, 0)
  head.writeUInt8(binary ? 1 : 0, 2)
  head.writeDoubleLE(seq, 3)
  head.writeUInt16LE(farewell?.code ?? 0, 11)
  head.writeUInt8(reason.length, 13)
  return Buffer.concat([head, reason, typeof body === 'string' ? Buffer.from(body) : body])
}

/**
 * @param {Buffer} bytes
 * @returns {Answer}
 */
export function decodeAnswer(bytes) {
  const code = bytes.readUInt16LE(11)
  const bodyStart = HEAD + bytes[13]
  return {
    status: bytes.readUInt16LE(0),
    binary: bytes[2] === 1,
    seq: bytes.readDoubleLE(3),
    farewell: code === 0 ? null : { code, reason: bytes.toString('utf8', HEAD, bodyStart) },
    // A driver may go on writing it when the bytes are long gone.
    body: Buffer.from(bytes.subarray(bodyStart)),
  }
}
