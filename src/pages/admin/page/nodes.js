import { duration, plural, short, whole } from '../../../base/format.js'
import { byId } from '../../web/dom.js'
import { Table } from '../../web/table.js'
import { reason } from './session.js'

/** @import { Session } from './session.js' */

/**
 * @typedef {{uid: string, name: string, version: string, uptime: number, num_clients: number, num_users: number,
 *   num_channels: number, num_subs: number, metrics?: {interval: number, items: Record<string, number>}}} NodeRow
 *   a node in `info` of the server API; uptime: s
 */

/** @param {NodeRow} row */
const delivered = ({ metrics }) =>
  metrics ? (metrics.items.publications_delivered ?? 0) / metrics.interval : 0

export class Nodes {
  #session
  #table

  /** @param {Session} session */
  constructor(session) {
    this.#session = session
    this.#table = new Table(
      byId('nodes'),
      'Nodes',
      [
        { label: 'Node', words: true, value: (/** @type {NodeRow} */ { name }) => name },
        { label: 'Version', words: true, value: ({ version }) => version },
        { label: 'Up', value: ({ uptime }) => uptime, text: ({ uptime }) => duration(uptime * 1000) },
        { label: 'Clients', value: ({ num_clients: n }) => n, text: ({ num_clients: n }) => whole(n) },
        { label: 'Users', value: ({ num_users: n }) => n, text: ({ num_users: n }) => whole(n) },
        { label: 'Channels', value: ({ num_channels: n }) => n, text: ({ num_channels: n }) => whole(n) },
        { label: 'Subscriptions', value: ({ num_subs: n }) => n, text: ({ num_subs: n }) => whole(n) },
        {
          label: 'Delivered /s',
          hint: 'publications handed to subscribers, over the last whole window',
          value: delivered,
          text: row => short(delivered(row)),
        },
        { label: 'Id', words: true, value: ({ uid }) => uid, tone: () => 'id' },
      ],
      { key: ({ uid }) => uid },
    )
    byId('nodes-refresh').addEventListener('click', () => this.refresh())
  }

  async refresh() {
    const fault = byId('nodes-fault')
    fault.textContent = ''
    try {
      const { nodes } = await this.#session.call('info')
      this.#table.show(nodes)
      byId('nodes-count').textContent = plural(nodes.length, 'node')
    } catch (error) {
      fault.textContent = `Not read: ${reason(error)}`
    }
  }
}
