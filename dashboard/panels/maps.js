import { short } from '../../src/base/format.js'
import { metricAt } from '../../src/metrics/table.js'
import { perSecond } from '../health.js'
import { fitItems, named } from '../view/parts.js'
import { shown } from '../view/state.js'

/** @import { Snapshot } from '../../src/metrics/schema.js' */
/** @import { Panel } from '../state.js' */

/**
 * A line with keys and counts, once there are some.
 * @param {'maps' | 'polls'} name @param {string[]} counts @returns {Panel}
 */
const line = (name, counts) => ({
  name,
  visible: state => {
    const { snapshot } = shown(state)
    if (state.view !== 'main' || snapshot === null) return false
    const given = /** @type {Record<string, number> | undefined} */ (snapshot.counters[name])
    return (snapshot.totals[name]?.keys ?? 0) > 0 || counts.some(count => (given?.[count] ?? 0) > 0)
  },
  rows: () => ({ min: 1, max: 1 }),
  priority: 4,

  draw(state, width) {
    const { totals, interval } = /** @type {Snapshot} */ (shown(state).snapshot)
    const { keys } = totals[name]
    const given = /** @type {Record<string, number>} */ (totals.counts[name])
    const items = [
      keys === null ? [] : named(metricAt(`totals.${name}.keys`).label, short(keys)),
      ...counts.map(count =>
        named(
          metricAt(`totals.counts.${name}.${count}`).label,
          `${short(perSecond(given[count], interval))}/s`,
        ),
      ),
    ]
    return [[[` ${name}  `, 'header'], ...fitItems(items, width - name.length - 3)]]
  },
})

/** Keys are unknown with Redis. */
export const maps = line('maps', ['publishes', 'removals', 'expiries'])

export const polls = line('polls', ['calls', 'failures', 'updates'])
