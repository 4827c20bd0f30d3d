// The views `Users`, with actions to disconnect, and `Nodes`.

import { duration, plural, short, whole } from '../../../base/format.js'
import { buttonById, byId, inputById, make, onSubmit, showResult, smallButton } from '../../web/dom.js'
import { figure, Table, words } from '../../web/table.js'
import { confirm, reason } from './session.js'

/** @import { Connection } from '../../../backends/api/operations.js' */
/** @import { Session } from './session.js' */

/**
 * @typedef {Connection & {node: {uid: string, name: string}, worker: number}} ConnectionRow
 * @typedef {{uid: string, name: string, version: string, uptime: number, num_clients: number, num_users: number,
 *   num_channels: number, num_subs: number, metrics?: {interval: number, items: Record<string, number>}}} NodeRow
 *   a node in `info` of the server API; uptime: s
 */

/** @param {ConnectionRow} row */
function channelsOf({ channels, subscriptions }) {
  const more = subscriptions - channels.length
  return more > 0 ? `${channels.join(', ')} and ${more} more` : channels.join(', ')
}

/** @param {Session} session @returns {() => Promise<unknown>} reads the connections again */
export function usersView(session) {
  const input = inputById('users-user')
  const all = buttonById('users-all')
  /** '' = all users */
  let chosen = ''
  let connected = 0
  const choose = (/** @type {string} */ user) => {
    chosen = user
    byId('users-result').textContent = ''
    refresh()
  }
  /** @param {object} target @param {{title: string, text: string, yes: string}} question @param {string} done */
  const disconnect = async (target, question, done) => {
    const text = `${question.text} closed with code 3503: SDKs do not reconnect.`
    if (!(await confirm({ ...question, text }))) return
    try {
      await session.call('disconnect', target)
      showResult('users-result', done)
    } catch (error) {
      showResult('users-result', `Disconnect failed: ${reason(error)}`, false)
    }
    await refresh()
  }
  /** A link to all connections of the user. @param {ConnectionRow} row */
  const name = ({ user }) => {
    if (user === '') return make('span', 'soft', 'anonymous')
    const show = () => {
      input.value = user
      choose(user)
    }
    return smallButton(user, `Connections of ${user}`, show, 'sort user')
  }
  const table = new Table(
    byId('users'),
    'Connections',
    [
      words('User', (/** @type {ConnectionRow} */ { user }) => user, { node: name, sorted: true }),
      words('Client', ({ client }) => client, { tone: () => 'id' }),
      words('Transport', ({ transport, codec }) => `${transport}, ${codec}`),
      words('Node, worker', ({ node, worker }) => `${node.name}, ${worker}`),
      figure('Channels', ({ subscriptions }) => subscriptions),
      words('Names', channelsOf, { tone: () => 'name' }),
      {
        label: 'Actions',
        value: () => 0,
        node: ({ user, client }) => {
          const question = { title: 'Disconnect this connection?', text: `${client} is`, yes: 'Disconnect' }
          const end = () => disconnect({ user, client }, question, `${client} was disconnected.`)
          return smallButton('Disconnect', `Disconnect ${client}`, end, 'quiet small danger')
        },
      },
    ],
    { key: ({ client }) => client, empty: 'No connections.' },
  )
  const refresh = () => {
    const user = chosen
    return session.show('users-fault', 'Cannot load the connections', async () => {
      const params = user === '' ? { all: true } : { user }
      const { total, connections } = await session.call('connections', params)
      if (user !== chosen) return
      connected = total
      table.show(connections)
      const shown = connections.length < total ? `, showing ${connections.length}` : ''
      byId('users-count').textContent = `${plural(total, 'connection')}${shown}`
      // One user only: a slip must not disconnect all users.
      all.disabled = user === '' || total === 0
    })
  }
  onSubmit('users-form', () => choose(input.value.trim()))
  all.addEventListener('click', () => {
    const [user, count] = [chosen, plural(connected, 'connection')]
    const text = `All ${count} of this user, on every node, are`
    const question = { title: `Disconnect ${user}?`, text, yes: 'Disconnect all' }
    disconnect({ user }, question, `${count} of ${user} disconnected.`)
  })
  return refresh
}

/** @param {NodeRow} row */
const delivered = ({ metrics }) =>
  metrics ? (metrics.items.publications_delivered ?? 0) / metrics.interval : 0

/** @param {Session} session @returns {() => Promise<unknown>} reads the nodes again */
export function nodesView(session) {
  const table = new Table(
    byId('nodes'),
    'Nodes',
    [
      words('Node', (/** @type {NodeRow} */ { name }) => name),
      words('Version', ({ version }) => version),
      figure(
        'Up',
        ({ uptime }) => uptime,
        uptime => duration(uptime * 1000),
      ),
      figure('Clients', row => row.num_clients, whole),
      figure('Users', row => row.num_users, whole),
      figure('Channels', row => row.num_channels, whole),
      figure('Subscriptions', row => row.num_subs, whole),
      figure('Delivered /s', delivered, short, { hint: 'to subscribers, over the last whole window' }),
      words('Id', ({ uid }) => uid, { tone: () => 'id' }),
    ],
    { key: ({ uid }) => uid },
  )
  const refresh = () =>
    session.show('nodes-fault', 'Cannot load the nodes', async () => {
      const { nodes } = await session.call('info')
      table.show(nodes)
      byId('nodes-count').textContent = plural(nodes.length, 'node')
    })
  byId('nodes-refresh').addEventListener('click', refresh)
  return refresh
}
