import { parseCommand, splitFrame } from './json-commands.js'

/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { Codec, ConnectResult, SubscribeResult } from './contract.js' */

const quote = JSON.stringify

/** Of a publication: its data is a delta. Of a subscription: the data may be deltas. */
const DELTA = ',"delta":true'

/** An empty payload in a JSON string, which SDKs parse. */
const EMPTY_TEXT = 'null'

const SPACE = 32
const QUOTE = 34
const BACKSLASH = 92
const TILDE = 126

/** Between the channel and the fields of a publication. */
const PUB = ',"pub":{'
/** Bytes of a push beside its channel, data and fields: more than its beginning and end have. */
const FIXED_SIZE = 128

/**
 * A loop, because a call into the runtime takes longer than such a short text.
 * @param {Buffer} buffer with room for the text @param {number} at @param {string} text ASCII
 * @returns {number} its end
 */
function writeAscii(buffer, at, text) {
  for (let i = 0; i < text.length; i++) buffer[at + i] = text.charCodeAt(i)
  return at + text.length
}

/**
 * The fields of a publication after its data.
 * @param {Publication} publication @param {boolean} live adds the epoch to the first publication of a stream
 * @param {boolean} [bare] without version, for delta-negotiated subscriptions
 */
function publicationTail({ offset, epoch, info, tags, version }, live, bare = false) {
  let text = ''
  if (info !== '') text += `,"info":${info}`
  if (offset > 0) text += `,"offset":${offset}`
  if (tags) text += `,"tags":${quote(tags)}`
  if (version > 0n && !bare) text += `,"version":${version}`
  if (live && offset === 1) text += `,"epoch":"${epoch}"`
  return text
}

/** @param {Publication[]} publications */
function publicationList(publications) {
  const texts = publications.map(publication => {
    const tail = publicationTail(publication, false)
    return publication.data.length > 0 ? `{"data":${publication.data}${tail}}` : `{${tail.slice(1)}}`
  })
  return `[${texts.join(',')}]`
}

/** The same for delta-negotiated subscriptions. @param {Publication} publication @param {Buffer | null} delta */
const deltaTail = (publication, delta) => publicationTail(publication, false, true) + (delta ? DELTA : '')

/**
 * The publications of a delta-negotiated subscription: the data are strings, deltas or not.
 * @param {Publication[]} publications @param {(Buffer | null)[]} deltas
 */
function deltaList(publications, deltas) {
  const texts = publications.map((publication, index) => {
    const delta = deltas[index]
    const data = quote((delta ?? publication.data).toString() || EMPTY_TEXT)
    return `{"data":${data}${deltaTail(publication, delta)}}`
  })
  return `[${texts.join(',')}]`
}

/** @param {SubscribeResult} result @returns {string} */
function subscribeResult(result) {
  let text = ''
  if (result.expires) text += ',"expires":true'
  if (result.ttl) text += `,"ttl":${result.ttl}`
  if (result.recoverable) text += ',"recoverable":true'
  if (result.epoch) text += `,"epoch":${quote(result.epoch)}`
  if (result.publications?.length) {
    const { publications, delta, deltas = [] } = result
    text += `,"publications":${delta ? deltaList(publications, deltas) : publicationList(publications)}`
  }
  if (result.recovered) text += ',"recovered":true'
  if (result.offset) text += `,"offset":${result.offset}`
  if (result.positioned) text += ',"positioned":true'
  if (result.data) text += `,"data":${result.data}`
  if (result.was_recovering) text += ',"was_recovering":true'
  if (result.delta) text += DELTA
  return `{${text.slice(1)}}`
}

/** @param {Map<string, SubscribeResult>} subs */
function subscribeResults(subs) {
  return [...subs].map(([channel, result]) => `${quote(channel)}:${subscribeResult(result)}`).join(',')
}

/** @param {ConnectResult} result @returns {string} */
export function connectResult(result) {
  const { client, version, expires, ttl, data, subs, ping, pong, session, node, time } = result
  let text = `{"client":"${client}","version":${quote(version)}`
  if (expires) text += ',"expires":true'
  if (ttl) text += `,"ttl":${ttl}`
  if (data) text += `,"data":${data}`
  if (subs?.size) text += `,"subs":{${subscribeResults(subs)}}`
  if (ping) text += `,"ping":${ping}`
  if (pong) text += ',"pong":true'
  if (session) text += `,"session":"${session}"`
  if (node) text += `,"node":${quote(node)}`
  if (time) text += `,"time":${time}`
  return `${text}}`
}

/** @param {{expires: boolean, ttl: number}} result */
const expiry = ({ expires, ttl }) => (expires ? `{"expires":true,"ttl":${ttl}}` : '{}')

/** @param {{code: number, message: string, temporary: boolean}} error @returns {string} without fields that are zero */
const errorOf = ({ code, message, temporary }) =>
  JSON.stringify({
    code: code || undefined,
    message: message || undefined,
    temporary: temporary || undefined,
  })

/**
 * The client protocol in JSON: one object a line, payloads unchanged.
 * @implements {Codec}
 */
export class JsonCodec {
  name = 'json'
  binary = false
  unidirectional = false
  ping = '{}'
  pong = '{}'
  split = splitFrame
  command = parseCommand
  #open
  #close
  /** Beginning of the pushes of a channel. */
  #channel
  /** End of a publication's push. */
  #end
  #scratch = Buffer.allocUnsafeSlow(64 * 1024)

  /** @param {string} [open] beginning of a push @param {string} [close] end of a push */
  constructor(open = '{"push":{', close = '}}') {
    this.#open = open
    this.#close = close
    this.#channel = `${open}"channel":`
    this.#end = `}${close}`
  }

  /** @param {string} line */
  size(line) {
    return line.length
  }

  /** @type {Codec['join']} */
  join(messages) {
    return messages.join('\n')
  }

  /** @type {Codec['error']} */
  error(id, { code, message, temporary }) {
    const tail = temporary ? ',"temporary":true' : ''
    // A backend may send an error without a code or a message, which clients get as it is.
    if (code === 0 || message === '') return `{"id":${id},"error":${errorOf({ code, message, temporary })}}`
    return `{"id":${id},"error":{"code":${code},"message":${quote(message)}${tail}}}`
  }

  /** @type {Codec['connect']} */
  connect(id, result) {
    return `{"id":${id},"connect":${connectResult(result)}}`
  }

  /** @type {Codec['subscribe']} */
  subscribe(id, result) {
    return `{"id":${id},"subscribe":${subscribeResult(result)}}`
  }

  /** @type {Codec['empty']} */
  empty(id, method) {
    return `{"id":${id},"${method}":{}}`
  }

  /** @type {Codec['rpc']} */
  rpc(id, data) {
    return `{"id":${id},"rpc":{${data.length > 0 ? `"data":${data}` : ''}}}`
  }

  /** @type {Codec['presence']} */
  presence(id, presence) {
    const members = [...presence].map(([client, info]) => `${quote(client)}:${info}`)
    return `{"id":${id},"presence":{"presence":{${members.join(',')}}}}`
  }

  /** @type {Codec['presenceStats']} */
  presenceStats(id, { clients, users }) {
    return `{"id":${id},"presence_stats":{"num_clients":${clients},"num_users":${users}}}`
  }

  /** @type {Codec['history']} */
  history(id, { publications, offset, epoch }) {
    const list = publicationList(publications)
    return `{"id":${id},"history":{"publications":${list},"epoch":"${epoch}","offset":${offset}}}`
  }

  /** @type {Codec['refreshed']} */
  refreshed(id, method, result) {
    return `{"id":${id},"${method}":${expiry(result)}}`
  }

  /** @type {Codec['publication']} */
  publication(channel, publication) {
    const { data } = publication
    const empty = data.length === 0
    const fields = publicationTail(publication, true)
    const tail = empty ? fields.slice(1) : fields
    const scratch = this.#reserve(channel.length * 6 + tail.length * 3 + data.length + FIXED_SIZE)
    let end = this.#writePub(scratch, channel)
    if (!empty) {
      end = writeAscii(scratch, end, '"data":')
      scratch.set(data, end)
      end += data.length
    }
    if (tail !== '') end += scratch.write(tail, end)
    return scratch.subarray(0, writeAscii(scratch, end, this.#end))
  }

  /**
   * Writes the beginning of a publication's push, up to its fields.
   * @param {Buffer} scratch with room for it @param {string} channel @returns {number} its end
   */
  #writePub(scratch, channel) {
    const from = writeAscii(scratch, 0, this.#channel)
    let end = writeAscii(scratch, from, '"')
    for (let i = 0; i < channel.length; i++) {
      const code = channel.charCodeAt(i)
      // Escaped or not ASCII: the runtime writes all of it.
      if (code < SPACE || code > TILDE || code === QUOTE || code === BACKSLASH)
        return from + scratch.write(`${quote(channel)}${PUB}`, from)
      scratch[end++] = code
    }
    end = writeAscii(scratch, end, '"')
    return writeAscii(scratch, end, PUB)
  }

  /** @type {Codec['deltaPublication']} */
  deltaPublication(channel, publication, delta) {
    // JSON escapes only ASCII, so the bytes of a multi-byte character may pass as latin1 characters.
    const data = quote((delta ?? publication.data).toString('latin1') || EMPTY_TEXT)
    const tail = deltaTail(publication, delta)
    const scratch = this.#reserve(channel.length * 6 + tail.length * 3 + data.length + FIXED_SIZE)
    let end = writeAscii(scratch, this.#writePub(scratch, channel), '"data":')
    end += scratch.write(data, end, 'latin1')
    end += scratch.write(tail, end)
    return scratch.subarray(0, writeAscii(scratch, end, this.#end))
  }

  /** @param {number} bytes @returns {Buffer} for one message */
  #reserve(bytes) {
    if (bytes > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(bytes * 2)
    return this.#scratch
  }

  /** @type {Codec['event']} */
  event(channel, info, joined) {
    return `${this.#channel}${quote(channel)},"${joined ? 'join' : 'leave'}":{"info":${info}}${this.#close}`
  }

  /** @type {Codec['unsubscribed']} */
  unsubscribed(channel, code, reason) {
    return `${this.#channel}${quote(channel)},"unsubscribe":{"code":${code},"reason":${quote(reason)}}${this.#close}`
  }

  /** @type {Codec['subscribed']} */
  subscribed(channel, result) {
    return `${this.#channel}${quote(channel)},"subscribe":${subscribeResult(result)}${this.#close}`
  }

  /** @type {Codec['refresh']} */
  refresh(result) {
    return `${this.#open}"refresh":${expiry(result)}${this.#close}`
  }

  /** @type {Codec['disconnect']} */
  disconnect(code, reason) {
    return `${this.#open}"disconnect":{"code":${code},"reason":${quote(reason)}}${this.#close}`
  }
}
