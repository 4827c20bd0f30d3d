import { badRequest, refusals } from './refusal.js'

/**
 * @typedef {object} PollRequest
 * @property {string[]} channels unique, at least one
 * @property {string} cursor '' = none
 * @property {number} timeout ms
 * @property {'earliest' | number | null} since start offset, exclusive, without a cursor; null: now
 * @property {string} token '' = none
 */
/** @typedef {Record<'channels' | 'cursor' | 'timeout' | 'since' | 'token', any>} Given unchecked */

/** @param {URLSearchParams} form @returns {Given} */
function fromForm(form) {
  const channels = form.getAll('channel')
  const [cursor, timeout, since, token] = ['cursor', 'timeout', 'since', 'token'].map(name => form.get(name))
  return { channels: channels.length > 0 ? channels : undefined, cursor, timeout, since, token }
}

/** @param {string} text starts like a JSON object @returns {Given} */
function fromJson(text) {
  let value
  try {
    value = JSON.parse(text)
  } catch {
    throw badRequest('the body is not a JSON object')
  }
  const { channels, channel, cursor, timeout, since, token } = value
  // One name or a list of names under either key.
  const names = (channels ?? channel) == null ? undefined : [channels ?? [], channel ?? []].flat()
  return { channels: names, cursor, timeout, since, token }
}

/** @param {Buffer} body of a POST @param {boolean} json whether the content type is JSON @returns {Given} */
function fromBody(body, json) {
  const text = body.toString()
  // `curl -d` sends JSON with the content type of a form; no form begins with a brace.
  if (text.trimStart().startsWith('{')) return fromJson(text)
  if (json) throw badRequest('the body is not a JSON object')
  return fromForm(new URLSearchParams(text))
}

/** @param {string} name @param {any} value @returns {string} */
function readText(name, value) {
  if (value == null) return ''
  if (typeof value !== 'string') throw badRequest(`${name} is not a string`)
  return value
}

/** @param {any} value @returns {string[]} */
function readChannels(value) {
  const channels = new Set(value ?? [])
  for (const channel of channels) {
    if (typeof channel !== 'string') throw badRequest('a channel is not a string')
    if (channel === '') throw badRequest('a channel name is empty')
  }
  if (channels.size === 0) throw refusals.noChannel
  return [...channels]
}

/** @param {any} value seconds @param {{timeout: number, max_timeout: number}} limits ms @returns {number} ms */
function readTimeout(value, { timeout, max_timeout }) {
  if (value == null) return timeout
  const number = typeof value === 'string' && /^(?:\d+\.?|\d*\.\d+)$/.test(value) ? Number(value) : value
  if (typeof number !== 'number' || !(number >= 0)) throw badRequest('timeout is not a number of seconds')
  return Math.min(max_timeout, Math.ceil(number * 1000))
}

/** @param {any} value @returns {'earliest' | number | null} */
function readSince(value) {
  if (value == null) return null
  if (value === 'earliest') return value
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  if (!Number.isSafeInteger(number) || number < 0) throw badRequest('since must be "earliest" or an offset')
  return number
}

/**
 * Reads a request. Parameters in the body override the query.
 * @param {string} query query string @param {Buffer | null} body of a POST
 * @param {boolean} json whether the content type is JSON @param {{timeout: number, max_timeout: number}} limits ms
 */
export function readRequest(query, body, json, limits) {
  const given = fromForm(new URLSearchParams(query))
  if (body !== null && body.length > 0) {
    for (const [name, value] of Object.entries(fromBody(body, json))) {
      if (value != null) given[/** @type {keyof Given} */ (name)] = value
    }
  }
  return {
    channels: readChannels(given.channels),
    cursor: readText('cursor', given.cursor),
    timeout: readTimeout(given.timeout, limits),
    since: readSince(given.since),
    token: readText('token', given.token),
  }
}
