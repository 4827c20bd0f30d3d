import { plural } from '../../../base/format.js'
import { byId, inputById, make, smallButton } from '../../web/dom.js'
import { Table } from '../../web/table.js'
import { confirm } from './confirm.js'
import { reason } from './session.js'

/** @import { Connection } from '../../../backends/api/operations.js' */
/** @import { Session } from './session.js' */

/** @typedef {Connection & {node: {uid: string, name: string}, worker: number}} ConnectionRow */

/** @param {ConnectionRow} row */
function channelsOf({ channels, subscriptions }) {
  const more = subscriptions - channels.length
  return more > 0 ? `${channels.join(', ')} and ${more} more` : channels.join(', ')
}

/** The connections of a user, or of everybody, on all nodes, and buttons that end them. */
export class Users {
  #session
  #table
  #all = /** @type {HTMLButtonElement} */ (byId('users-all'))
  #user = ''
  #total = 0

  /** @param {Session} session */
  constructor(session) {
    this.#session = session
    this.#table = new Table(
      byId('users'),
      'Connections',
      [
        {
          label: 'User',
          words: true,
          value: (/** @type {ConnectionRow} */ { user }) => user,
          node: row => this.#name(row),
          sorted: true,
        },
        { label: 'Client', words: true, value: ({ client }) => client, tone: () => 'id' },
        { label: 'Transport', words: true, value: ({ transport, codec }) => `${transport}, ${codec}` },
        { label: 'Node, worker', words: true, value: ({ node, worker }) => `${node.name}, ${worker}` },
        { label: 'Channels', value: ({ subscriptions }) => subscriptions },
        { label: 'Names', words: true, value: channelsOf, tone: () => 'name' },
        { label: 'Actions', value: () => 0, node: row => this.#button(row) },
      ],
      { key: ({ client }) => client, empty: 'Nobody is connected.' },
    )
    byId('users-form').addEventListener('submit', event => {
      event.preventDefault()
      this.#choose(inputById('users-user').value.trim())
    })
    this.#all.addEventListener('click', () => this.#endAll())
  }

  /** @param {string} user '' = everybody */
  #choose(user) {
    this.#user = user
    byId('users-result').textContent = ''
    this.refresh()
  }

  /** A user's name, which leads to all connections of the user. @param {ConnectionRow} row */
  #name({ user }) {
    if (user === '') return make('span', 'soft', 'anonymous')
    return smallButton(
      user,
      `Connections of ${user}`,
      () => {
        inputById('users-user').value = user
        this.#choose(user)
      },
      'sort user',
    )
  }

  /** @param {ConnectionRow} row */
  #button({ user, client }) {
    const end = () => this.#end(user, client)
    return smallButton('Disconnect', `Disconnect ${client}`, end, 'quiet small danger')
  }

  async refresh() {
    const user = this.#user
    const fault = byId('users-fault')
    fault.textContent = ''
    try {
      const params = user === '' ? { all: true } : { user }
      const { total, connections } = await this.#session.call('connections', params)
      if (user !== this.#user) return
      this.#total = total
      this.#table.show(connections)
      const shown = connections.length < total ? `, ${connections.length} shown` : ''
      byId('users-count').textContent = `${plural(total, 'connection')}${shown}`
      // Of one user only: a slip must not end everybody's connections.
      this.#all.disabled = user === '' || total === 0
    } catch (error) {
      fault.textContent = `Not read: ${reason(error)}`
    }
  }

  /** @param {string} user @param {string} client */
  async #end(user, client) {
    const sure = await confirm({
      title: 'Disconnect this connection?',
      text: `${client} is closed with code 3503: SDKs do not reconnect.`,
      yes: 'Disconnect',
    })
    if (sure) this.#disconnect({ user, client }, `${client} was disconnected.`)
  }

  async #endAll() {
    const user = this.#user
    const count = plural(this.#total, 'connection')
    const sure = await confirm({
      title: `Disconnect ${user}?`,
      text: `All ${count} of this user, on every node, are closed with code 3503: SDKs do not reconnect.`,
      yes: 'Disconnect all',
    })
    if (sure) this.#disconnect({ user }, `${count} of ${user} disconnected.`)
  }

  /** @param {object} target @param {string} done */
  async #disconnect(target, done) {
    const result = byId('users-result')
    try {
      await this.#session.call('disconnect', target)
      result.textContent = done
      result.className = 'result'
    } catch (error) {
      result.textContent = `Not disconnected: ${reason(error)}`
      result.className = 'result bad'
    }
    await this.refresh()
  }
}
