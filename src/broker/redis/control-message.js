// What workers of different nodes write to each other: a letter, fields, a line feed, and a body of any bytes.
// Fields are ids of workers (letters and digits) and numbers.

/** What a message is, with its fields; what stands in brackets is its body. */
export const Kind = Object.freeze({
  /** uid, index of the worker [id of its node]: this worker can be reached from now on */
  HERE: '+',
  /** uid: this worker has ended */
  GONE: '-',
  /** who asks, number of the survey [JSON: operation, parameters] */
  ASK: '?',
  /** number of the survey, who answers [JSON] */
  TOLD: '=',
  /** number of the survey, who answers, bytes: the answer has been left in Redis */
  LEFT: '@',
  /** number of the survey, who has no answer */
  UNTOLD: '!',
  /** who calls, number of the call, 0 = no answer is wanted [request] */
  CALL: 'c',
  /** number of the call [answer] */
  ANSWER: 'a',
  /** number of the call: there will be no answer */
  FAILED: 'f',
  /** who calls [JSON: numbers of its calls]: which of them are not known? */
  PROBE: 'p',
})

/**
 * @param {string} kind
 * @param {(string | number)[]} fields
 * @param {string | Buffer} [body] is copied
 * @returns {string | Buffer}
 */
export function encode(kind, fields, body = '') {
  const head = `${kind}${fields.join(' ')}\n`
  return typeof body === 'string' ? head + body : Buffer.concat([Buffer.from(head), body])
}

/**
 * @param {Buffer} message
 * @returns {{kind: string, fields: string[], body: Buffer}} the body is a part of the message
 */
export function decode(message) {
  const end = message.indexOf('\n')
  const head = message.toString('latin1', 0, Math.max(end, 0))
  return { kind: head.slice(0, 1), fields: head.slice(1).split(' '), body: message.subarray(end + 1) }
}
