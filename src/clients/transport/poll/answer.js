/** @import { Encoded } from '../../protocol/contract.js' */
/** @import { Exchange } from '../../server/contract.js' */

/**
 * @typedef {object} Answer response to a POST
 * @property {number} status
 * @property {Encoded} body messages, or an error line
 * @property {number} seq number of the last message in the body; -1: no session messages
 * @property {boolean} binary whether the messages are Protobuf
 * @property {{code: number, reason: string} | null} closeNotice the session ended after these messages
 */

/** @param {number} status @param {string} line @returns {Readonly<Answer>} */
const refusal = (status, line) =>
  Object.freeze({ status, body: line, seq: -1, binary: false, closeNotice: null })

export const answers = Object.freeze({
  accepted: refusal(204, ''),
  unknown: refusal(404, 'unknown session'),
  ended: refusal(404, 'the session has ended'),
  tooHigh: refusal(400, 'ack is higher than the last message sent'),
  tooLow: refusal(409, 'ack is lower than an earlier ack'),
  gap: refusal(409, 'send must be the previous number + 1'),
  empty: refusal(400, 'the body contains no commands'),
  tooLong: refusal(413, 'the body is too long'),
  full: refusal(503, 'too many connections'),
  noBroker: refusal(503, 'the worker of the session is unreachable'),
})

/** @param {string} line */
export const badRequest = line => refusal(400, line)

const HEAD = 2 + 1 + 8 + 2 + 1

/**
 * For the worker with the client's request:
 *
 *   u16 status | u8 binary | f64 seq | u16 close code, 0 = none | u8 length of the reason | reason | body
 *
 * @param {Answer} answer
 */
function encodeAnswer({ status, body, seq, binary, closeNotice }) {
  const reason = Buffer.from(closeNotice?.reason ?? '').subarray(0, 255)
  const head = Buffer.alloc(HEAD)
  head.writeUInt16LE(status, 0)
  head.writeUInt8(binary ? 1 : 0, 2)
  head.writeDoubleLE(seq, 3)
  head.writeUInt16LE(closeNotice?.code ?? 0, 11)
  head.writeUInt8(reason.length, 13)
  return Buffer.concat([head, reason, typeof body === 'string' ? Buffer.from(body) : body])
}

/** @param {Buffer} bytes @returns {Answer} */
export function decodeAnswer(bytes) {
  const code = bytes.readUInt16LE(11)
  const bodyStart = HEAD + bytes[13]
  return {
    status: bytes.readUInt16LE(0),
    binary: bytes[2] === 1,
    seq: bytes.readDoubleLE(3),
    closeNotice: code === 0 ? null : { code, reason: bytes.toString('utf8', HEAD, bodyStart) },
    // Copied: the socket server may write it later.
    body: Buffer.from(bytes.subarray(bodyStart)),
  }
}

/**
 * @typedef {object} WaitingPoll a pending POST
 * @property {(answer: Answer) => void} answer MUST be called at most once
 * @property {() => string} remoteAddress of the client, '' if unknown
 * @property {(worker: number, poll: number) => boolean} is whether this is poll number `poll` of worker `worker`
 */

const BINARY = 'application/octet-stream'
const TEXT = 'text/plain; charset=utf-8'

/** @param {string} reason any text; headers allow only visible ASCII @returns {string} for `decodeURIComponent` */
const headerText = reason =>
  Buffer.from(reason)
    .toString()
    .replace(/[^ -$&-~]/gu, encodeURIComponent)

/** @template T @implements {WaitingPoll} */
export class HttpPoll {
  #exchange
  #head
  #name
  #abandoned

  /**
   * @param {Exchange} exchange @param {Readonly<Record<string, string>>} head
   * @param {string} name of the session opened by the request; '' for later requests @param {T} subject
   * @param {(waitingPoll: HttpPoll<T>) => void} abandoned shared by all polls
   */
  constructor(exchange, head, name, subject, abandoned) {
    this.#exchange = exchange
    this.#head = head
    this.#name = name
    this.subject = subject
    this.#abandoned = abandoned
    exchange.waiter = this
  }

  is() {
    return false
  }

  remoteAddress() {
    return this.#exchange.remoteAddress()
  }

  abandoned() {
    this.#abandoned(this)
  }

  /** @type {WaitingPoll['answer']} */
  answer({ status, body, seq, binary, closeNotice }) {
    const head = { ...this.#head }
    if (this.#name !== '') head['Halley-Session'] = this.#name
    if (seq >= 0) {
      head['Content-Type'] = binary ? BINARY : TEXT
      head['Halley-Seq'] = `${seq}`
    }
    if (closeNotice !== null) head['Halley-Close'] = `${closeNotice.code} ${headerText(closeNotice.reason)}`
    this.#exchange.waiter = null
    this.#exchange.reply(status, head, body)
  }
}

/** A request from another worker. @implements {WaitingPoll} */
export class RemotePoll {
  #answer
  #worker
  #poll

  /** @param {import('../calls.js').Answer} answer @param {number} worker @param {number} poll number there */
  constructor(answer, worker, poll) {
    this.#answer = answer
    this.#worker = worker
    this.#poll = poll
  }

  /** @type {WaitingPoll['is']} */
  is(worker, poll) {
    return worker === this.#worker && poll === this.#poll
  }

  remoteAddress() {
    return ''
  }

  /** @type {WaitingPoll['answer']} */
  answer(answer) {
    this.#answer(encodeAnswer(answer))
  }
}
