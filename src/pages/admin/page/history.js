import { plural } from '../../../base/format.js'
import { byId, inputById, make } from '../../web/dom.js'
import { reason } from './session.js'

/** @import { Session } from './session.js' */

/** Characters of a payload that are shown. */
const MAX_TEXT = 4000
/** Publications of an answer. */
const MAX_LIMIT = 500

/**
 * @typedef {{offset: number, data?: any, b64data?: string, info?: {user: string, client: string},
 *   tags?: Record<string, string>}} Publication
 * @typedef {{channel: string, limit: number, newest: boolean, since?: {offset: number, epoch: string}}} Request
 */

/** Numbers beyond the precision of a double keep their digits, where the browser can. @type {any} */
const keepDigits = (
  /** @type {string} */ _,
  /** @type {any} */ value,
  /** @type {any} */ { source } = {},
) => {
  const { rawJSON } = /** @type {any} */ (JSON)
  return typeof value === 'number' && rawJSON && source !== String(value) ? rawJSON(source) : value
}

/** @param {string} text */
const parseExactly = text => JSON.parse(text, keepDigits)

/** @param {Publication} publication @returns {string} */
function textOf({ data, b64data }) {
  const text = b64data === undefined ? JSON.stringify(data ?? null) : `base64: ${b64data}`
  const more = text.length - MAX_TEXT
  return more > 0 ? `${text.slice(0, MAX_TEXT)} … ${plural(more, 'character')} more` : text
}

/** @param {Publication} publication */
function rowOf(publication) {
  const { offset, info, tags } = publication
  const by = info && `by ${info.user === '' ? 'anonymous' : info.user}, client ${info.client}`
  const facts = [by, tags && Object.entries(tags).map(([name, value]) => `${name}: ${value}`)].flat()
  return make(
    'li',
    '',
    make('span', 'offset', String(offset)),
    make('code', 'payload', textOf(publication)),
    make('span', 'facts', facts.filter(Boolean).join(' · ')),
  )
}

/** The publications that a channel keeps, page by page. */
export class History {
  #session
  #channel = inputById('history-channel')
  #order = inputById('history-order')
  #limit = inputById('history-limit')
  #since = inputById('history-since')
  #list = byId('history')
  #more = byId('history-more')
  /** @type {Request | null} the next page */
  #next = null
  /** Answers of earlier requests are dropped. */
  #requests = 0

  /** @param {Session} session */
  constructor(session) {
    this.#session = session
    this.#limit.max = String(MAX_LIMIT)
    this.#order.addEventListener('change', () => this.#label())
    byId('history-form').addEventListener('submit', event => {
      event.preventDefault()
      this.#start()
    })
    this.#more.addEventListener('click', () => this.#next && this.#read(this.#next))
    this.#label()
  }

  /** @param {string} channel */
  choose(channel) {
    this.#channel.value = channel
    this.#since.value = ''
    this.#start()
    byId('history-card').scrollIntoView({ block: 'start' })
  }

  get #newest() {
    return this.#order.value === 'newest'
  }

  #label() {
    byId('history-since-label').textContent = this.#newest ? 'Before offset' : 'After offset'
    // Nothing precedes the first publication.
    this.#since.min = this.#newest ? '1' : '0'
    this.#since.placeholder = this.#newest ? 'the newest' : 'the oldest'
  }

  #start() {
    const since = this.#since.value
    this.#list.replaceChildren()
    this.#more.hidden = true
    this.#read({
      channel: this.#channel.value,
      limit: Math.min(MAX_LIMIT, Number(this.#limit.value)),
      newest: this.#newest,
      ...(since === '' ? {} : { since: { offset: Number(since), epoch: '' } }),
    })
  }

  /** @param {Request} request */
  async #read(request) {
    const { channel, limit, newest, since } = request
    const asked = ++this.#requests
    const fault = byId('history-fault')
    const count = byId('history-count')
    fault.textContent = ''
    try {
      const params = { channel, limit, reverse: newest, ...(since ? { since } : {}) }
      const answer = await this.#session.call('history', params, parseExactly)
      if (asked !== this.#requests) return
      /** @type {{publications: Publication[], offset: number, epoch: string}} */
      const { publications, offset, epoch } = answer
      this.#list.append(...publications.map(rowOf))
      const shown = this.#list.childElementCount
      if (shown === 0) this.#list.append(make('li', 'empty', 'No publications.'))
      count.textContent = `${shown} shown · top offset ${offset} · epoch ${epoch}`
      const last = publications.at(-1)?.offset ?? 0
      // The epoch holds the pages together: a stream that began anew is an error.
      this.#next = { ...request, since: { offset: last, epoch } }
      const focused = document.activeElement === this.#more
      this.#more.hidden = publications.length < limit || (newest ? last <= 1 : last >= offset)
      // A hidden button would take the place of the keyboard with it.
      if (focused && this.#more.hidden) this.#list.focus()
    } catch (error) {
      if (asked !== this.#requests) return
      count.textContent = '\u00a0'
      const why = reason(error)
      fault.textContent =
        why === 'not available' ? `The namespace of ${channel} keeps no history.` : `Not read: ${why}`
    }
  }
}
