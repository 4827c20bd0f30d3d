// Families of batched channels (docs/batching.md).

import { BATCH_BOUNDS, noBatchCounts } from '../batch-stats.js'
import { byName, counter, plainGauge } from './family.js'

/** @import { Facts, Family, HistogramFamily } from './family.js' */

/** @param {Facts} facts */
const countsOf = ({ snapshot }) => snapshot.counters.batches ?? noBatchCounts()

/** @type {HistogramFamily} */
const items = {
  name: 'halley_batch_items',
  type: 'histogram',
  help: 'Publications, joins and leaves that a worker sent together, of each flush of a batched channel.',
  labels: [],
  read: facts => {
    const { flushes, items, within } = countsOf(facts)
    const count = Object.values(flushes).reduce((sum, number) => sum + number, 0)
    return [[{ bounds: BATCH_BOUNDS, counts: within, count, sum: items }]]
  },
}

/** @type {readonly Family[]} */
export const batches = Object.freeze([
  counter(
    'halley_batch_flushes_total',
    'Flushes of batched channels, by reason (docs/batching.md).',
    ['reason'],
    facts => byName(countsOf(facts).flushes),
  ),
  items,
  counter(
    'halley_batch_conflated_total',
    'Publications that a newer one has replaced in a batch, counted in each worker, by namespace.',
    ['namespace'],
    facts => byName(countsOf(facts).conflated),
  ),
  plainGauge(
    'halley_batch_windows',
    'Batches of channels that have items and are not sent yet.',
    ({ snapshot }) => snapshot.totals.windows,
  ),
])
