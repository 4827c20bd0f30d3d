// Of the view `Channels`: a map with its entries, and a form to publish a key.

import { plural, whole } from '../../../base/format.js'
import { buttonById, byId, inputById, onSubmit, showResult, smallButton } from '../../web/dom.js'
import { actions, figure, Table, words } from '../../web/table.js'
import { jsonField, parseExactly, payloadText } from './payloads.js'
import { confirm, reason } from './session.js'

/** @import { Payload } from './payloads.js' */
/** @import { Session } from './session.js' */

/** Maximum characters shown of a value. */
const MAX_TEXT = 300
/** Entries per request. */
const MAX_LIMIT = 500

/** Names of the kinds of channels. @type {Readonly<Record<string, string>>} */
export const KINDS = Object.freeze({
  stream: 'stream',
  map: 'map',
  map_clients: 'map of clients',
  map_users: 'map of users',
  shared_poll: 'shared poll',
})

/**
 * @typedef {Payload & {key: string, tags?: Record<string, string>, offset?: number, time?: number}} Entry
 * @typedef {{kind: string, mode: string, keys: number}} MapInfo
 * @typedef {{entries: Entry[], cursor?: string, offset?: number, epoch?: string}} Page
 * @typedef {{channel: string, prefix: string, limit: number, cursor: string, epoch: string}} Request
 */

const moment = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })

/** @param {Entry} entry */
const tagsOf = ({ tags = {} }) =>
  Object.entries(tags)
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ')

/** @param {Session} session @param {string} channel @param {object} query @returns {Promise<Page>} */
const readState = (session, channel, query) =>
  session.call('map_read_state', { channel, ...query }, parseExactly)

/**
 * Pages are in byte order of the keys, so the keys that start with a prefix follow it.
 * @param {Session} session @param {Request} request @returns {Promise<Page>}
 */
async function readPage(session, { channel, prefix, limit, cursor, epoch }) {
  const query = { limit, cursor: cursor || prefix, revision_epoch: epoch }
  const page = await readState(session, channel, query)
  const all = page.entries
  if (cursor === '' && prefix !== '')
    all.unshift(...(await readState(session, channel, { key: prefix })).entries)
  const entries = all.filter(({ key }) => key.startsWith(prefix))
  return { ...page, entries, cursor: entries.length < all.length ? '' : (page.cursor ?? '') }
}

/**
 * @param {Session} session
 * @returns {{show: (channel: string) => void, publish: (channel: string) => void}} `show`: its entries; `publish`: fills
 *   it in
 */
export function mapCard(session) {
  const [channelInput, prefix, limit] = ['channel', 'prefix', 'limit'].map(name => inputById(`map-${name}`))
  const [clear, more] = [buttonById('map-clear'), byId('map-more')]
  const [channelField, key] = [inputById('map-publish-channel'), inputById('map-key')]
  const data = /** @type {HTMLTextAreaElement} */ (byId('map-data'))
  /** @type {Map<string, Entry>} */
  const entries = new Map()
  /** The shown page. @type {Request | null} */
  let last = null
  let keys = 0
  /** Ignores responses to earlier requests. */
  let requests = 0
  const result = (/** @type {string} */ text, good = true) => showResult('map-result', text, good)

  const table = new Table(
    byId('map-entries'),
    'Entries',
    [
      words('Key', (/** @type {Entry} */ entry) => entry.key, { tone: () => 'name key' }),
      words('Value', entry => payloadText(entry, MAX_TEXT), { tone: () => 'name payload' }),
      words('Tags', tagsOf, { tone: () => 'name tags' }),
      figure('Offset', ({ offset }) => offset ?? null, whole),
      figure(
        'Written',
        ({ time }) => time ?? null,
        time => moment.format(time),
      ),
      actions('buttons end', entry => [
        smallButton('Edit', `Edit ${entry.key}`, () => edit(entry.key)),
        smallButton('Remove', `Remove ${entry.key}`, () => remove(entry.key), 'quiet small danger'),
      ]),
    ],
    { key: entry => entry.key, empty: 'No keys.' },
  )

  /** @param {MapInfo} info @param {Page} page */
  const describe = (info, { offset = 0, epoch = '' }) => {
    keys = info.keys
    byId('map-count').textContent = [
      `${KINDS[info.kind]}, ${info.mode}`,
      plural(keys, 'key'),
      `${whole(entries.size)} shown`,
      ...(epoch === '' ? [] : [`offset ${whole(offset)}`, `epoch ${epoch}`]),
    ].join(' · ')
  }

  /** @param {Request} request */
  const read = async request => {
    const number = ++requests
    const { channel } = request
    const fault = byId('map-fault')
    fault.textContent = ''
    try {
      // First: its error names another kind of channel.
      const info = await session.call('map_info', { channel })
      const page = await readPage(session, request)
      if (number !== requests) return
      for (const entry of page.entries) entries.set(entry.key, entry)
      table.show([...entries.values()])
      describe(info, page)
      // With the epoch, a map cleared between two pages is an error.
      last = { ...request, cursor: page.cursor ?? '', epoch: page.epoch ?? '' }
      const focused = document.activeElement === more
      more.hidden = page.cursor === ''
      // A hidden button would lose the focus.
      if (focused && more.hidden) byId('map-entries').focus()
      clear.disabled = false
    } catch (error) {
      if (number !== requests) return
      const why = reason(error)
      fault.textContent = why === 'not available' ? 'This channel is not a map.' : `Cannot load it: ${why}.`
    }
  }

  const start = () => {
    entries.clear()
    table.show([])
    last = null
    more.hidden = clear.disabled = true
    byId('map-count').textContent = '\u00a0'
    result('')
    channelField.value = channelInput.value
    const size = Math.min(MAX_LIMIT, Number(limit.value))
    return read({ channel: channelInput.value, prefix: prefix.value, limit: size, cursor: '', epoch: '' })
  }

  /** Shows the current entry of a key. @param {string} channel @param {string} name */
  const refresh = async (channel, name) => {
    if (last?.channel !== channel) return
    await session.show('map-fault', 'Cannot load the key', async () => {
      const [page, info] = await Promise.all([
        readState(session, channel, { key: name }),
        session.call('map_info', { channel }),
      ])
      if (last?.channel !== channel) return
      const [entry] = page.entries
      if (entry === undefined) entries.delete(name)
      else if (name.startsWith(last.prefix)) entries.set(name, entry)
      table.show([...entries.values()])
      describe(info, page)
    })
  }

  /** @param {string} what fails @param {() => Promise<void>} work */
  const attempt = async (what, work) => {
    try {
      await work()
    } catch (error) {
      result(`${what} failed: ${reason(error)}.`, false)
    }
  }

  /** @param {string} name */
  const edit = name => {
    const entry = entries.get(name)
    if (last === null || entry === undefined) return
    channelField.value = last.channel
    key.value = name
    // Bytes are no JSON.
    if (entry.b64data === undefined) data.value = JSON.stringify(entry.data ?? null)
    check()
    data.focus()
  }

  /** @param {string} name */
  const remove = async name => {
    if (last === null) return
    const { channel } = last
    const text = `The subscribers of ${channel} receive the removal. It cannot be undone.`
    if (!(await confirm({ title: `Remove ${name}?`, text, yes: 'Remove' }))) return
    await attempt('Remove', async () => {
      const { suppressed } = await session.call('map_remove', { channel, key: name })
      result(suppressed ? `${name} did not exist any more.` : `Removed ${name}.`)
      await refresh(channel, name)
    })
  }

  clear.addEventListener('click', async () => {
    if (last === null) return
    const { channel } = last
    const text = `${plural(keys, 'key')} and all recorded changes are removed. This cannot be undone.`
    if (!(await confirm({ title: `Clear ${channel}?`, text, yes: 'Clear' }))) return
    await attempt('Clear', async () => {
      await session.call('map_clear', { channel })
      if (last?.channel === channel) await start()
      result(`Cleared ${channel}.`)
    })
  })

  const check = jsonField(data, fault => showResult('map-publish-result', fault, false))
  onSubmit('map-publish-form', async () => {
    if (!check()) return
    const [channel, name] = [channelField.value, key.value]
    const show = (/** @type {string} */ text, good = true) => showResult('map-publish-result', text, good)
    const send = buttonById('map-send')
    send.disabled = true
    try {
      // The original text keeps numbers beyond double precision.
      const params = `{"channel":${JSON.stringify(channel)},"key":${JSON.stringify(name)},"data":${data.value}}`
      const { offset, epoch } = await session.call('map_publish', params)
      const position = offset === undefined ? '' : `, offset ${offset}, epoch ${epoch}`
      show(`Published ${name} to ${channel}${position}.`)
      await refresh(channel, name)
    } catch (error) {
      show(`Publish failed: ${reason(error)}.`, false)
    }
    send.disabled = false
  })

  limit.max = String(MAX_LIMIT)
  onSubmit('map-form', start)
  more.addEventListener('click', () => last && read(last))
  return {
    show(channel) {
      channelInput.value = channel
      prefix.value = ''
      start()
      byId('map-card').scrollIntoView({ block: 'start' })
    },
    publish(channel) {
      channelField.value = channel
      key.focus()
      byId('map-publish-form').scrollIntoView({ block: 'center' })
    },
  }
}
