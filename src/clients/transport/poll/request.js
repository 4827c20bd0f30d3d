import { Call } from '../calls.js'

/**
 * @typedef {object} PollRequest query of a POST to the endpoint
 * @property {string} session session id; '' opens a session
 * @property {string} node of the session; '' = this node
 * @property {number} ack number of the last received message; -1: not a poll
 * @property {number} send number of this POST among command POSTs; 0 = not counted
 * @property {boolean} close whether the client closes the session
 * @property {number} timeout ms
 */

const SESSION_ID_SIZE = 36

/** @param {string | null} text @param {number} absent @returns {number} NaN: not an integer */
function count(text, absent) {
  if (text === null) return absent
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
}

/** @param {string | null} text seconds @param {number} longest ms @returns {number} ms; NaN: not a number */
function seconds(text, longest) {
  if (text === null) return longest
  return /^\d{1,6}(?:\.\d{1,6})?$/.test(text) ? Math.min(longest, Math.ceil(Number(text) * 1000)) : Number.NaN
}

/** @param {string} query raw @param {number} longest ms @returns {PollRequest | string} or an error line */
export function readRequest(query, longest) {
  const given = new URLSearchParams(query)
  const id = given.get('session')
  const ack = count(given.get('ack'), -1)
  const send = count(given.get('send'), 0)
  const timeout = seconds(given.get('timeout'), longest)
  const close = given.get('close') ?? '0'
  if (Number.isNaN(ack)) return 'ack is not a whole number'
  if (Number.isNaN(send) || (send === 0 && given.has('send'))) return 'send is not a whole number from 1 on'
  if (Number.isNaN(timeout)) return 'timeout is not a number of seconds'
  if (close !== '0' && close !== '1') return 'close must be 0 or 1'
  const request = { session: '', node: '', ack, send, close: close === '1', timeout }
  if (id === null) {
    if (ack >= 0 || send > 0 || request.close) return 'session is missing'
    return request
  }
  if (id === '') return 'session is empty'
  if (ack < 0 && send === 0 && !request.close) return 'ack, send or close is required'
  request.session = id.slice(0, SESSION_ID_SIZE)
  // A session id contains the worker; the session's name for clients appends the node.
  request.node = id.slice(SESSION_ID_SIZE + 1)
  return request
}

/** @param {string} sessionId @param {string} node @returns {string} the session's name for clients */
export const sessionName = (sessionId, node) => `${sessionId}.${node}`

const Op = Object.freeze({ POST: 0, ABANDON: 1 })
const CALL_HEAD = 1 + SESSION_ID_SIZE + 1 + 8 + 8 + 1 + 4 + 4 + 4

/**
 * For the session's worker. The sending worker and a number identify a poll, so that the sender can cancel it.
 *
 *   kind | 36 x ASCII session | u8 op | f64 ack | f64 send | u8 close | u32 timeout | u32 worker | u32 poll | body
 *
 * @param {PollRequest} request @param {number} worker @param {number} poll
 * @param {Buffer | null} body null: the poll's client disconnected
 */
export function encodeCall({ session, ack, send, close, timeout }, worker, poll, body) {
  const head = Buffer.alloc(CALL_HEAD)
  let at = head.writeUInt8(Call.POLL, 0)
  at += head.write(session, at, SESSION_ID_SIZE, 'latin1')
  at = head.writeUInt8(body === null ? Op.ABANDON : Op.POST, at)
  at = head.writeDoubleLE(ack, at)
  at = head.writeDoubleLE(send, at)
  at = head.writeUInt8(close ? 1 : 0, at)
  at = head.writeUInt32LE(timeout, at)
  at = head.writeUInt32LE(worker, at)
  head.writeUInt32LE(poll, at)
  return body === null || body.length === 0 ? head : Buffer.concat([head, body])
}

/** @param {Buffer} call without its kind */
export function decodeCall(call) {
  const session = call.toString('latin1', 0, SESSION_ID_SIZE)
  const at = SESSION_ID_SIZE
  const request = {
    session,
    node: '',
    ack: call.readDoubleLE(at + 1),
    send: call.readDoubleLE(at + 9),
    close: call[at + 17] === 1,
    timeout: call.readUInt32LE(at + 18),
  }
  return {
    request,
    worker: call.readUInt32LE(at + 22),
    poll: call.readUInt32LE(at + 26),
    body: call[at] === Op.ABANDON ? null : call.subarray(CALL_HEAD - 1),
  }
}
