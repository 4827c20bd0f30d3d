import { byId, inputById, plural, smallButton } from '../../demo/page/dom.js'
import { confirm } from './confirm.js'
import { reason } from './session.js'
import { Table } from './table.js'

/** @import { Connection } from '../../api/operations.js' */
/** @import { Session } from './session.js' */

/** @typedef {Connection & {node: {uid: string, name: string}, worker: number}} ConnectionRow */

/** @param {ConnectionRow} row */
function channelsOf({ channels, subscriptions }) {
  const more = subscriptions - channels.length
  return more > 0 ? `${channels.join(', ')} and ${more} more` : channels.join(', ')
}

/** The connections of a user on all nodes, and buttons that end them. */
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
          label: 'Client',
          words: true,
          value: (/** @type {ConnectionRow} */ { client }) => client,
          tone: () => 'id',
        },
        { label: 'Transport', words: true, value: ({ transport }) => transport },
        { label: 'Codec', words: true, value: ({ codec }) => codec },
        { label: 'Node', words: true, value: ({ node }) => node.name },
        { label: 'Worker', value: ({ worker }) => worker },
        { label: 'Subscriptions', value: ({ subscriptions }) => subscriptions },
        { label: 'Channels', words: true, value: channelsOf, tone: () => 'name wide' },
        { label: 'Actions', value: () => 0, node: ({ client }) => this.#button(client) },
      ],
      { key: ({ client }) => client },
    )
    byId('users-form').addEventListener('submit', event => {
      event.preventDefault()
      this.#user = inputById('users-user').value.trim()
      byId('users-result').textContent = ''
      this.refresh()
    })
    this.#all.addEventListener('click', () => this.#endAll())
  }

  /** @param {string} client */
  #button(client) {
    return smallButton('Disconnect', `Disconnect ${client}`, () => this.#end(client), 'quiet small danger')
  }

  async refresh() {
    const user = this.#user
    const fault = byId('users-fault')
    fault.textContent = ''
    try {
      const { total, connections } = await this.#session.call('connections', { user })
      if (user !== this.#user) return
      this.#total = total
      this.#table.show(connections)
      const shown = connections.length < total ? `, ${connections.length} shown` : ''
      byId('users-count').textContent = `${plural(total, 'connection')}${shown}`
      // Anonymous connections do not belong together: they are ended one by one.
      this.#all.disabled = user === '' || total === 0
    } catch (error) {
      fault.textContent = `Not read: ${reason(error)}`
    }
  }

  /** @param {string} client */
  async #end(client) {
    const sure = await confirm({
      title: 'Disconnect this connection?',
      text: `${client} is closed with code 3503: SDKs do not reconnect.`,
      yes: 'Disconnect',
    })
    if (sure) this.#disconnect({ user: this.#user, client }, `${client} was disconnected.`)
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
