// The view `Channels`: channels with subscriber counts, presence and history of a channel, a publish form; maps.

import { plural, whole } from '../../../base/format.js'
import { buttonById, byId, inputById, make, onSubmit, showResult, smallButton } from '../../web/dom.js'
import { actions, figure, Table, words } from '../../web/table.js'
import { KINDS, mapCard } from './maps.js'
import { jsonField, parseExactly, payloadText } from './payloads.js'
import { reason } from './session.js'

/** @import { Payload } from './payloads.js' */
/** @import { Session } from './session.js' */

/** Maximum listed clients of a channel; more are only counted. */
const MAX_LISTED = 500
/** Maximum characters shown of a payload. */
const MAX_TEXT = 4000
/** Publications per request. */
const MAX_LIMIT = 500

/**
 * @typedef {{name: string, kind: string, clients: number}} ChannelRow
 * @typedef {{user: string, client: string, conn_info?: any, chan_info?: any}} PresentRow
 * @typedef {Payload & {offset: number, info?: {user: string, client: string}, tags?: Record<string, string>}} Publication
 * @typedef {{channel: string, limit: number, newest: boolean, since?: {offset: number, epoch: string}}} Request
 */

/** @param {unknown} value @returns {string} as JSON, or '' */
const json = value => (value === undefined ? '' : JSON.stringify(value))

/** @param {Session} session @returns {() => Promise<unknown>} reads the channels again */
export function channelsView(session) {
  const publish = publishForm(session)
  const history = historyCard(session)
  const presence = presenceTable(session)
  const map = mapCard(session)
  const table = new Table(
    byId('channels'),
    'Channels',
    [
      words('Channel', (/** @type {ChannelRow} */ { name }) => name, { tone: () => 'name wide' }),
      words('Kind', ({ kind }) => KINDS[kind] ?? kind),
      figure('Clients', ({ clients }) => clients, whole),
      actions('buttons end', ({ name, kind }) => {
        const isMap = kind.startsWith('map')
        return [
          smallButton('Publish', `Publish: ${name}`, () => (isMap ? map.publish(name) : publish(name))),
          smallButton('Presence', `Presence: ${name}`, () => presence(name)),
          isMap
            ? smallButton('Keys', `Keys: ${name}`, () => map.show(name))
            : smallButton('History', `History: ${name}`, () => history(name)),
        ]
      }),
    ],
    {
      key: ({ name, kind }) => `${kind} ${name}`,
      sort: 2,
      descending: true,
      empty: 'No channel has subscribers.',
    },
  )
  const refresh = () =>
    session.show('channels-fault', 'Cannot load the channels', async () => {
      const pattern = inputById('channels-pattern').value.trim()
      const { total, channels } = await session.call('channels', { pattern })
      table.show(channels)
      const shown = channels.length < total ? `, showing the ${channels.length} largest` : ''
      byId('channels-count').textContent = `${plural(total, 'channel')}${shown}`
    })
  onSubmit('channels-form', refresh)
  return refresh
}

/** @param {Session} session @returns {(channel: string) => Promise<void>} shows the presence of a channel */
function presenceTable(session) {
  const table = new Table(
    byId('present-rows'),
    'Presence',
    [
      words('User', (/** @type {PresentRow} */ { user }) => user, {
        text: ({ user }) => user || 'anonymous',
        tone: ({ user }) => (user === '' ? 'soft' : 'user'),
      }),
      words('Client', ({ client }) => client, { tone: () => 'id' }),
      words('Connection info', ({ conn_info }) => json(conn_info), { tone: () => 'name' }),
      words('Channel info', ({ chan_info }) => json(chan_info), { tone: () => 'name' }),
    ],
    { key: ({ client }) => client, empty: 'Nobody.' },
  )
  let chosen = ''
  return async channel => {
    chosen = channel
    byId('present').hidden = false
    byId('present-title').textContent = `Presence in ${channel}`
    const count = byId('present-count')
    count.textContent = '…'
    table.show([])
    let text = ''
    try {
      const { num_clients: clients, num_users: users } = await session.call('presence_stats', { channel })
      text = `${plural(clients, 'client')} of ${plural(users, 'user')}`
      if (clients > MAX_LISTED) text += `, too many to list`
      else {
        const { presence } = await session.call('presence', { channel })
        if (chosen === channel) table.show(Object.values(presence))
      }
    } catch (error) {
      const why = reason(error)
      text = why === 'not available' ? 'Presence is off in this namespace.' : `Cannot load it: ${why}`
    }
    if (chosen !== channel) return
    count.textContent = text
    byId('present').scrollIntoView({ block: 'nearest' })
  }
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
    make('code', 'payload', payloadText(publication, MAX_TEXT)),
    make('span', 'facts', facts.filter(Boolean).join(' · ')),
  )
}

/** History, page by page. @param {Session} session @returns {(channel: string) => void} shows a channel */
function historyCard(session) {
  const [channelInput, order, limit, since] = ['channel', 'order', 'limit', 'since'].map(name =>
    inputById(`history-${name}`),
  )
  const [list, more, count] = [byId('history'), byId('history-more'), byId('history-count')]
  /** @type {Request | null} the next page */
  let next = null
  /** Ignores responses to earlier requests. */
  let requests = 0
  const newestFirst = () => order.value === 'newest'
  const label = () => {
    byId('history-since-label').textContent = newestFirst() ? 'Before offset' : 'After offset'
    // Nothing precedes the first publication.
    since.min = newestFirst() ? '1' : '0'
    since.placeholder = newestFirst() ? 'the newest' : 'the oldest'
  }
  /** @param {Request} request */
  const read = async request => {
    const { channel, limit, newest, since } = request
    const number = ++requests
    const fault = byId('history-fault')
    fault.textContent = ''
    try {
      const params = { channel, limit, reverse: newest, ...(since ? { since } : {}) }
      /** @type {{publications: Publication[], offset: number, epoch: string}} */
      const { publications, offset, epoch } = await session.call('history', params, parseExactly)
      if (number !== requests) return
      list.append(...publications.map(rowOf))
      const shown = list.childElementCount
      if (shown === 0) list.append(make('li', 'empty', 'No publications.'))
      count.textContent = `${shown} shown · top offset ${offset} · epoch ${epoch}`
      const last = publications.at(-1)?.offset ?? 0
      // With the epoch, a stream reset between two pages is an error.
      next = { ...request, since: { offset: last, epoch } }
      const focused = document.activeElement === more
      more.hidden = publications.length < limit || (newest ? last <= 1 : last >= offset)
      // A hidden button would lose the focus.
      if (focused && more.hidden) list.focus()
    } catch (error) {
      if (number !== requests) return
      count.textContent = '\u00a0'
      const why = reason(error)
      fault.textContent =
        why === 'not available' ? 'History is off in this namespace.' : `Cannot load it: ${why}`
    }
  }
  const start = () => {
    const offset = since.value
    list.replaceChildren()
    more.hidden = true
    read({
      channel: channelInput.value,
      limit: Math.min(MAX_LIMIT, Number(limit.value)),
      newest: newestFirst(),
      ...(offset === '' ? {} : { since: { offset: Number(offset), epoch: '' } }),
    })
  }
  limit.max = String(MAX_LIMIT)
  order.addEventListener('change', label)
  onSubmit('history-form', start)
  more.addEventListener('click', () => next && read(next))
  label()
  return channel => {
    channelInput.value = channel
    since.value = ''
    start()
    byId('history-card').scrollIntoView({ block: 'start' })
  }
}

/** @param {Session} session @returns {(channel: string) => void} fills in a channel */
function publishForm(session) {
  const channelInput = inputById('publish-channel')
  const data = /** @type {HTMLTextAreaElement} */ (byId('publish-data'))
  const show = (/** @type {string} */ text, good = false) => showResult('publish-result', text, good)
  const check = jsonField(data, show)
  onSubmit('publish-form', async () => {
    if (!check()) return
    const channel = channelInput.value
    const send = buttonById('publish-send')
    send.disabled = true
    try {
      // The original text keeps numbers beyond double precision.
      const params = `{"channel":${JSON.stringify(channel)},"data":${data.value}}`
      const { offset, epoch } = await session.call('publish', params)
      const position = offset === undefined ? '' : `, offset ${offset}, epoch ${epoch}`
      show(`Published to ${channel}${position}.`, true)
    } catch (error) {
      show(`Publish failed: ${reason(error)}`)
    }
    send.disabled = false
  })
  return channel => {
    channelInput.value = channel
    data.focus()
    byId('publish-form').scrollIntoView({ block: 'center' })
  }
}
