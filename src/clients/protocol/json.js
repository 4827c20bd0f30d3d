import { entryText } from '../../channels/broker/entry-json.js'
import { parseCommand, splitFrame } from './json-commands.js'

/** @import { Keyed, Publication } from '../../channels/broker/contract.js' */
/** @import { ChannelRef, Codec, ConnectResult, SubscribeResult } from './contract.js' */

const quote = JSON.stringify

const DELTA = ',"delta":true'
/** An empty payload: SDKs parse the string. */
const EMPTY_TEXT = 'null'
const SPACE = 32
const QUOTE = 34
const BACKSLASH = 92
const TILDE = 126

const STATE_END = Buffer.from('}}')

const PUB = ',"pub":{'
/** Maximum bytes of a push, excluding the channel's name, data and fields. */
const FIXED_SIZE = 128

/** @param {ChannelRef} channel @returns {number} maximum bytes of its name in JSON */
const sizeOfRef = channel => (typeof channel === 'number' ? 0 : channel.length * 6)

/** Faster than `write` for short text. @param {Buffer} buffer @param {number} at @param {string} text ASCII */
function writeAscii(buffer, at, text) {
  for (let i = 0; i < text.length; i++) buffer[at + i] = text.charCodeAt(i)
  return at + text.length
}

/** @param {Keyed} keyed */
export const keyedTail = ({ key, removed, append }) =>
  `,"key":${quote(key)}${removed ? ',"removed":true' : ''}${append ? ',"append":true' : ''}`

/**
 * @param {Publication} publication @param {boolean} live writes the epoch at offset 1
 * @param {boolean} [bare] of a stream without version, for delta-negotiated subscriptions
 */
function publicationTail({ offset, epoch, info, tags, version, keyed }, live, bare = false) {
  let text = ''
  if (info !== '') text += `,"info":${info}`
  if (offset > 0) text += `,"offset":${offset}`
  if (tags) text += `,"tags":${quote(tags)}`
  if (keyed) text += keyedTail(keyed)
  if (version > 0n && (!bare || keyed)) text += `,"version":${version}`
  if (live && offset === 1) text += `,"epoch":"${epoch}"`
  return text
}

/** @param {Publication} publication @param {Buffer | null} delta */
const deltaTail = (publication, delta) => publicationTail(publication, false, true) + (delta ? DELTA : '')

/**
 * @param {Publication[]} publications @param {(Buffer | null)[]} [deltas] all data become strings
 * @param {boolean} [state] entries of a map
 */
function publicationList(publications, deltas, state = false) {
  const texts = publications.map((publication, i) => {
    if (deltas !== undefined && !publication.keyed?.removed) {
      const data = quote((deltas[i] ?? publication.data).toString() || EMPTY_TEXT)
      return `{"data":${data}${deltaTail(publication, deltas[i])}${state ? timeTail(publication) : ''}}`
    }
    return publicationText(publication, state)
  })
  return `[${texts.join(',')}]`
}

/** @param {Publication} publication @param {boolean} state whether it is an entry of a map */
function publicationText(publication, state) {
  const { data, info, offset, tags, keyed, version } = publication
  if (state && keyed)
    return entryText(String(data), info, offset, tags ? quote(tags) : '', keyed.key, version, keyed.time)
  const tail = publicationTail(publication, false)
  return data.length > 0 ? `{"data":${data}${tail}}` : `{${tail.slice(1)}}`
}

/** @param {Publication} publication */
const timeTail = ({ keyed }) => (keyed && keyed.time > 0 ? `,"time":${keyed.time}` : '')

/** @param {SubscribeResult} result @returns {string} */
function subscribeResult(result) {
  const { publications, state, delta, deltas = [] } = result
  let text = ''
  if (result.expires) text += ',"expires":true'
  if (result.ttl) text += `,"ttl":${result.ttl}`
  if (result.recoverable) text += ',"recoverable":true'
  if (result.epoch) text += `,"epoch":${quote(result.epoch)}`
  if (publications?.length)
    text += `,"publications":${publicationList(publications, delta ? deltas : undefined)}`
  if (result.recovered) text += ',"recovered":true'
  if (result.offset) text += `,"offset":${result.offset}`
  if (result.positioned) text += ',"positioned":true'
  if (result.data) text += `,"data":${result.data}`
  if (result.was_recovering) text += ',"was_recovering":true'
  if (delta && !result.phase) text += DELTA
  if (result.id) text += `,"id":${result.id}`
  if (result.type) text += `,"type":${result.type}`
  if (result.phase) text += `,"phase":${result.phase}`
  if (result.cursor) text += `,"cursor":${quote(result.cursor)}`
  if (Array.isArray(state) && state.length > 0)
    text += `,"state":${publicationList(state, delta ? [] : undefined, true)}`
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

/** One object per line, payloads unchanged. @implements {Codec} */
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
  #channel
  #id
  #end
  #scratch = Buffer.allocUnsafeSlow(64 * 1024)

  /** @param {string} [open] of a push @param {string} [close] */
  constructor(open = '{"push":{', close = '}}') {
    this.#open = open
    this.#close = close
    this.#channel = `${open}"channel":`
    this.#id = `${open}"id":`
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
    // Backend errors may lack a code or message: zero values are not written.
    let text = ''
    if (code !== 0) text += `,"code":${code}`
    if (message !== '') text += `,"message":${quote(message)}`
    if (temporary) text += ',"temporary":true'
    return `{"id":${id},"error":{${text.slice(1)}}}`
  }

  /** @type {Codec['connect']} */
  connect(id, result) {
    return `{"id":${id},"connect":${connectResult(result)}}`
  }

  /** @type {Codec['subscribe']} */
  subscribe(id, result) {
    const text = `{"id":${id},"subscribe":${subscribeResult(result)}}`
    const { state } = result
    if (!Buffer.isBuffer(state)) return text
    return Buffer.concat([Buffer.from(`${text.slice(0, -2)},"state":`), state, STATE_END])
  }

  /** @type {Codec['empty']} */
  empty(id, method) {
    return `{"id":${id},"${method}":{}}`
  }

  /** @type {Codec['published']} */
  published(id, { offset, epoch, suppressed, current }) {
    let text = ''
    if (offset > 0) text += `,"offset":${offset}`
    if (epoch !== '') text += `,"epoch":${quote(epoch)}`
    if (suppressed !== '') text += `,"suppress_reason":"${suppressed}"`
    if (current) text += `,"current":${publicationText(current, true)}`
    return `{"id":${id},"publish":{${text.slice(1)}}}`
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
    const scratch = this.#reserve(sizeOfRef(channel) + tail.length * 3 + data.length + FIXED_SIZE)
    let end = this.#writePub(scratch, channel)
    if (!empty) {
      end = writeAscii(scratch, end, '"data":')
      scratch.set(data, end)
      end += data.length
    }
    if (tail !== '') end += scratch.write(tail, end)
    return scratch.subarray(0, writeAscii(scratch, end, this.#end))
  }

  /** Writes a push up to its fields. @param {Buffer} scratch @param {ChannelRef} channel */
  #writePub(scratch, channel) {
    if (typeof channel === 'number')
      return writeAscii(scratch, writeAscii(scratch, 0, this.#id), `${channel}${PUB}`)
    const from = writeAscii(scratch, 0, this.#channel)
    let end = writeAscii(scratch, from, '"')
    for (let i = 0; i < channel.length; i++) {
      const code = channel.charCodeAt(i)
      if (code < SPACE || code > TILDE || code === QUOTE || code === BACKSLASH)
        return from + scratch.write(`${quote(channel)}${PUB}`, from)
      scratch[end++] = code
    }
    end = writeAscii(scratch, end, '"')
    return writeAscii(scratch, end, PUB)
  }

  /** @type {Codec['deltaPublication']} */
  deltaPublication(channel, publication, delta) {
    if (publication.keyed?.removed) return this.publication(channel, publication)
    // JSON escapes only ASCII, so Latin-1 preserves other bytes.
    const data = quote((delta ?? publication.data).toString('latin1') || EMPTY_TEXT)
    const tail = deltaTail(publication, delta)
    const scratch = this.#reserve(sizeOfRef(channel) + tail.length * 3 + data.length + FIXED_SIZE)
    let end = writeAscii(scratch, this.#writePub(scratch, channel), '"data":')
    end += scratch.write(data, end, 'latin1')
    end += scratch.write(tail, end)
    return scratch.subarray(0, writeAscii(scratch, end, this.#end))
  }

  /** @param {number} bytes */
  #reserve(bytes) {
    if (bytes > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(bytes * 2)
    return this.#scratch
  }

  /** @type {Codec['event']} */
  event(channel, info, joined) {
    const head = `${typeof channel === 'number' ? this.#id : this.#channel}${quote(channel)}`
    return `${head},"${joined ? 'join' : 'leave'}":{"info":${info}}${this.#close}`
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

  /** @type {Codec['message']} */
  message(data) {
    return `${this.#open}"message":{"data":${data}}${this.#close}`
  }

  /** @type {Codec['disconnect']} */
  disconnect(code, reason) {
    return `${this.#open}"disconnect":{"code":${code},"reason":${quote(reason)}}${this.#close}`
  }
}
