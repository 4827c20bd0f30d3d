// The views `Users`, with actions to disconnect and to block, and `Nodes`.

import { duration, milliseconds, plural, short, whole } from '../../../base/format.js'
import { buttonById, byId, inputById, make, onSubmit, showResult, smallButton } from '../../web/dom.js'
import { figure, Table, words } from '../../web/table.js'
import { confirm, reason } from './session.js'

/** @import { FilterNode } from '../../../clients/protocol/filter.js' */
/** @import { Session } from './session.js' */

/**
 * A connection in `connections` of the server API, with its place.
 * @typedef {{client: string, node: {uid: string, name: string}, worker: number, user: string, transport: string,
 *   protocol: string, app_name?: string, app_version?: string, connected_at_ms: number, ping_pong_latency_ms: number,
 *   state: {channels: Record<string, {source: number}>}, labels?: Record<string, string>}} ConnectionRow
 * @typedef {{uid: string, name: string, version: string, uptime: number, num_clients: number, num_users: number,
 *   num_channels: number, num_subs: number, metrics?: {interval: number, items: Record<string, number>}}} NodeRow
 *   a node in `info` of the server API; uptime: s
 */

/** What allowed a subscription, by `source`. */
const SOURCES = [
  'unknown',
  'connection token',
  'connect proxy',
  'subscription token',
  'subscribe proxy',
  'user in name',
  'options',
  'insecure',
  'connect request',
  'personal',
  'API',
  'capabilities',
]

/** Channels with their sources; others are counted. */
const MAX_NAMES = 20

/** @param {ConnectionRow} row */
function channelsOf({ state }) {
  const all = Object.entries(state.channels)
  const shown = all.slice(0, MAX_NAMES).map(([name, { source }]) => `${name} (${SOURCES[source] ?? source})`)
  const more = all.length - shown.length
  const names = more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
  return names === '' ? '0' : `${all.length}: ${names}`
}

/** @param {ConnectionRow} row */
const labelsOf = ({ labels = {} }) =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ')

/**
 * Reads `tier=pro, region!=eu`: all of them must match.
 * @param {string} text
 * @returns {FilterNode | undefined} undefined: no filter
 * @throws {Error} naming the part that is not understood
 */
function labelFilterOf(text) {
  if (text === '') return undefined
  const nodes = text.split(',').map(part => {
    const [, key, negated, val] = /^\s*([^=!]+?)\s*(!?)=\s*(.+?)\s*$/.exec(part) ?? []
    if (key === undefined)
      throw new Error(`${part.trim() || 'an empty part'} is not name=value or name!=value`)
    return { key, cmp: negated ? 'neq' : 'eq', val }
  })
  return nodes.length === 1 ? nodes[0] : { op: 'and', nodes }
}

const time = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })

/** @param {Session} session @returns {() => Promise<unknown>} reads the connections again */
export function usersView(session) {
  const input = inputById('users-user')
  const labels = inputById('users-labels')
  const all = buttonById('users-all')
  /** `user`: '' = all users; `filter`: of labels */
  let chosen = { user: '', filter: /** @type {FilterNode | undefined} */ (undefined) }
  let connected = 0
  /** Clock of the gateway minus that of the browser, ms. */
  let ahead = 0
  const choose = (/** @type {string} */ user) => {
    byId('users-result').textContent = ''
    try {
      chosen = { user, filter: labelFilterOf(labels.value.trim()) }
    } catch (error) {
      byId('users-fault').textContent = `Labels: ${error.message}.`
      return
    }
    refresh()
  }
  /**
   * @param {string} method @param {object} params @param {{title: string, text: string, yes: string}} question
   * @param {string} done
   */
  const order = async (method, params, question, done) => {
    if (!(await confirm(question))) return
    try {
      await session.call(method, params)
      showResult('users-result', done)
    } catch (error) {
      const what = method[0].toUpperCase() + method.slice(1).replace('_user', '')
      showResult('users-result', `${what} failed: ${reason(error)}`, false)
    }
    await refresh()
  }
  /** @param {object} target @param {{title: string, text: string, yes: string}} question @param {string} done */
  const disconnect = (target, question, done) => {
    const text = `${question.text} closed with code 3503: SDKs do not reconnect.`
    return order('disconnect', target, { ...question, text }, done)
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
      words('Transport', ({ transport, protocol }) => `${transport}, ${protocol}`),
      words('App', ({ app_name = '', app_version = '' }) => `${app_name} ${app_version}`.trim()),
      words('Node, worker', ({ node, worker }) => `${node.name}, ${worker}`),
      figure('Connected', ({ connected_at_ms: since }) => Date.now() + ahead - since, duration),
      figure('Latency', ({ ping_pong_latency_ms: latency }) => (latency < 0 ? null : latency), milliseconds, {
        hint: 'between the last ping and its pong',
      }),
      words('Labels', labelsOf, { tone: () => 'name labels' }),
      {
        ...figure('Channels', ({ state }) => Object.keys(state.channels).length),
        words: true,
        text: channelsOf,
        tone: () => 'name channels',
        hint: 'number of subscriptions; names, and what allowed each: docs/access.md',
      },
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
    const shown = chosen
    const { user, filter } = shown
    return session.show('users-fault', 'Cannot load the connections', async () => {
      const params = { label_filter: filter, ...(user === '' ? { all: true } : { user }) }
      const { total, connections, now, blocks } = await session.call('connections', params)
      if (shown !== chosen) return
      ahead = now - Date.now()
      connected = total
      table.show(connections)
      const cut = connections.length < total ? `, showing ${connections.length}` : ''
      byId('users-count').textContent = `${plural(total, 'connection')}${cut}`
      // One user or one set of labels: a slip must not disconnect all users.
      all.disabled = (user === '' && filter === undefined) || total === 0
      byId('block-form').hidden = user === '' || !blocks
      byId('block-user').textContent = `Block ${user}`
    })
  }
  onSubmit('users-form', () => choose(input.value.trim()))
  all.addEventListener('click', () => {
    const { user, filter } = chosen
    const count = plural(connected, 'connection')
    const whose = user === '' ? 'of all users' : 'of this user'
    const question = {
      title: `Disconnect ${user === '' ? count : user}?`,
      text: `All ${count} ${whose}${filter === undefined ? '' : ' with these labels'}, on every node, are`,
      yes: 'Disconnect all',
    }
    const target = { user, label_filter: filter, all_users: user === '' }
    disconnect(target, question, `${count}${user === '' ? '' : ` of ${user}`} disconnected.`)
  })
  onSubmit('block-form', () => {
    const { user } = chosen
    const seconds = Number(/** @type {HTMLSelectElement} */ (byId('block-time')).value)
    const end = Math.ceil((Date.now() + ahead) / 1000) + seconds
    const until = seconds === 0 ? 'until it is unblocked' : `until ${time.format(end * 1000)}`
    const text = `Its connections are closed with code 3507, and it cannot connect ${until}.`
    const params = seconds === 0 ? { user } : { user, expire_at: end }
    const question = { title: `Block ${user}?`, text, yes: 'Block' }
    order('block_user', params, question, `${user} is blocked ${until}.`)
  })
  byId('unblock').addEventListener('click', () => {
    const { user } = chosen
    const question = { title: `Unblock ${user}?`, text: 'It may connect again.', yes: 'Unblock' }
    order('unblock_user', { user }, question, `${user} is not blocked.`)
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
