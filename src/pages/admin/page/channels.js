import { plural, whole } from '../../../base/format.js'
import { byId, inputById, make, smallButton } from '../../web/dom.js'
import { Table } from '../../web/table.js'
import { reason } from './session.js'

/** @import { Session } from './session.js' */

/** Clients of a channel above which they are counted, not listed. */
const MAX_LISTED = 500

/** @typedef {{name: string, clients: number}} ChannelRow */

/** @param {unknown} value @returns {string} as JSON, or '' */
const json = value => (value === undefined ? '' : JSON.stringify(value))

/** Channels with their subscribers, and the presence of one. */
export class Channels {
  #session
  #table
  #presence
  #channel = ''
  /** @type {(channel: string) => void} on a click on `Publish` */
  onPublish = () => {}
  /** @type {(channel: string) => void} on a click on `History` */
  onHistory = () => {}

  /** @param {Session} session */
  constructor(session) {
    this.#session = session
    this.#table = new Table(
      byId('channels'),
      'Channels',
      [
        {
          label: 'Channel',
          words: true,
          value: (/** @type {ChannelRow} */ { name }) => name,
          tone: () => 'name wide',
        },
        { label: 'Clients', value: ({ clients }) => clients, text: ({ clients }) => whole(clients) },
        { label: 'Actions', value: () => 0, node: ({ name }) => this.#actions(name) },
      ],
      { key: ({ name }) => name, sort: 1, descending: true, empty: 'No channel has subscribers.' },
    )
    this.#presence = new Table(
      byId('present-rows'),
      'Presence',
      [
        {
          label: 'User',
          words: true,
          value: (/** @type {any} */ { user }) => user,
          text: ({ user }) => user || 'anonymous',
          tone: ({ user }) => (user === '' ? 'soft' : 'user'),
        },
        { label: 'Client', words: true, value: ({ client }) => client, tone: () => 'id' },
        {
          label: 'Connection info',
          words: true,
          value: ({ conn_info }) => json(conn_info),
          tone: () => 'name',
        },
        { label: 'Channel info', words: true, value: ({ chan_info }) => json(chan_info), tone: () => 'name' },
      ],
      { key: ({ client }) => client, empty: 'Nobody.' },
    )
    byId('channels-form').addEventListener('submit', event => {
      event.preventDefault()
      this.refresh()
    })
  }

  /** @param {string} name */
  #actions(name) {
    return make(
      'div',
      'buttons end',
      smallButton('Publish', `Publish: ${name}`, () => this.onPublish(name)),
      smallButton('Presence', `Presence: ${name}`, () => this.#showPresence(name)),
      smallButton('History', `History: ${name}`, () => this.onHistory(name)),
    )
  }

  async refresh() {
    const pattern = inputById('channels-pattern').value.trim()
    const fault = byId('channels-fault')
    fault.textContent = ''
    try {
      const { total, channels } = await this.#session.call('channels', { pattern })
      this.#table.show(channels)
      const shown = channels.length < total ? `, the ${channels.length} largest shown` : ''
      byId('channels-count').textContent = `${plural(total, 'channel')}${shown}`
    } catch (error) {
      fault.textContent = `Not read: ${reason(error)}`
    }
  }

  /** @param {string} channel */
  async #showPresence(channel) {
    this.#channel = channel
    byId('present').hidden = false
    byId('present-title').textContent = `Present in ${channel}`
    const count = byId('present-count')
    count.textContent = '…'
    this.#presence.show([])
    let text = ''
    try {
      const { num_clients: clients, num_users: users } = await this.#session.call('presence_stats', {
        channel,
      })
      text = `${plural(clients, 'client')} of ${plural(users, 'user')}`
      if (clients > MAX_LISTED) text += `, too many to list`
      else {
        const { presence } = await this.#session.call('presence', { channel })
        if (this.#channel === channel) this.#presence.show(Object.values(presence))
      }
    } catch (error) {
      const why = reason(error)
      text = why === 'not available' ? 'Its namespace keeps no presence.' : `Not read: ${why}`
    }
    if (this.#channel !== channel) return
    count.textContent = text
    byId('present').scrollIntoView({ block: 'nearest' })
  }
}
