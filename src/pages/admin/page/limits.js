import { plural, short, whole } from '../../../base/format.js'
import { byId } from '../../web/dom.js'
import { figure, Table, words } from '../../web/table.js'

/** @import { Snapshot } from '../../../metrics/schema.js' */
/** @import { TableColumn } from '../../web/table.js' */

/** @typedef {{place: string, rate: number, total: number}} Limited `place`: block and command; `rate`: a second */

/** @type {TableColumn<Limited>[]} */
const COLUMNS = [
  words('Limit', ({ place }) => place.split(' ')[0], { tone: () => 'name' }),
  words('Command', ({ place }) => place.split(' ').slice(1).join(' ')),
  figure('Refused /s', ({ rate }) => rate, short, {
    hint: 'in the last second; unsubscribes are only counted',
    tone: rate => (rate > 0 ? 'warn' : ''),
  }),
  figure('Since the start', ({ total }) => total, whole),
]

/** What `client.rate_limit` has refused, if anything. @returns {(snapshot: Snapshot) => void} */
export function limitsTable() {
  const table = new Table(byId('limits'), 'Rate limits', COLUMNS, {
    key: ({ place }) => place,
    sort: 3,
    descending: true,
  })
  return ({ counters, totals, interval }) => {
    // An older gateway has no limits.
    const rows = Object.entries(counters.rate_limited ?? {}).map(([place, total]) => ({
      place,
      rate: ((totals.counts.rate_limited?.[place] ?? 0) * 1000) / interval,
      total,
    }))
    byId('limits-card').hidden = rows.length === 0
    byId('limits-count').textContent = plural(
      rows.reduce((sum, { total }) => sum + total, 0),
      'refused command',
    )
    table.show(rows)
  }
}
