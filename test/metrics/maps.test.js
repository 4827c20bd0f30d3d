// Figures of maps of a real gateway, where operators see them.

import { join } from 'node:path'
import t from 'tap'
import { page } from '../../dashboard/screen.js'
import { initialState, reduce } from '../../dashboard/state.js'
import { plain } from '../../dashboard/terminal/line.js'
import { readCsv } from '../../src/metrics/csv-reader.js'
import { tempDir } from '../kit/folders.js'
import { startGateway } from '../kit/gateway.js'
import { until } from '../kit/wait.js'
import { Watcher } from '../kit/watcher.js'
import { value } from './prometheus/exposition.js'
import { settled } from './prometheus/scrape.js'

/** @param {Float64Array | (number | null)[]} values */
const total = values =>
  Array.from(values).reduce((/** @type {number} */ sum, value) => sum + Number(value), 0)

t.test('publishes, removals, expiries and keys are in metrics, CSV file and dashboard', async t => {
  const folder = tempDir(t)
  const file = join(folder, 'figures.csv')
  const socket = join(folder, 's.sock')
  const gateway = await startGateway(t, {
    prometheus: { enabled: true },
    stats: { socket, csv: { file } },
    channel: {
      namespaces: [
        { name: 'map', subscription_type: 'map', map: { mode: 'recoverable', key_ttl: '1h' } },
        { name: 'brief', subscription_type: 'map', map: { mode: 'ephemeral', key_ttl: '1s' } },
      ],
    },
  })
  const watcher = await Watcher.at(t, socket)
  const expired = watcher.snapshot(({ counters }) => counters.maps.expiries === 3)
  /** @param {string} channel @param {string} key @param {object} [more] */
  const publish = (channel, key, more) => gateway.api('map_publish', { channel, key, data: 1, ...more })
  for (const key of ['k1', 'k2', 'k3', 'k4', 'k5', 'k1']) await publish('map:1', key)
  await publish('map:1', 'k1', { key_mode: 'if_new' })
  for (const key of ['k2', 'k2', 'none']) await gateway.api('map_remove', { channel: 'map:1', key })
  for (const key of ['e1', 'e2', 'e3']) await publish('brief:1', key)
  for (const key of ['c1', 'c2']) await publish('map:cleared', key)
  await gateway.api('map_clear', { channel: 'map:cleared' })

  const figures = { publishes: 11, removals: 1, expiries: 3 }
  const got = await settled(gateway, got => value(got, 'halley_map_expiries_total') === 3)
  for (const [name, count] of Object.entries(figures)) t.equal(value(got, `halley_map_${name}_total`), count)
  t.equal(value(got, 'halley_map_keys'), 4)

  const snapshot = await expired
  t.same(snapshot.counters.maps, figures)
  let state = initialState({
    look: { unicode: true, colors: false },
    size: { columns: 100, rows: 30 },
    source: '',
    now: 0,
  })
  state = reduce(state, { type: 'message', now: 0, message: { type: 'snapshot', snapshot } })
  t.match(page(state).map(plain).join('\n'), /^ maps {2}keys 4 {2}publishes /m)

  const columns = await until(async () => {
    const { columns } = await readCsv(file)
    return total(columns.map_expiries) === 3 && columns
  })
  for (const [name, count] of Object.entries(figures)) t.equal(total(columns[`map_${name}`]), count)
  t.equal(columns.map_keys.at(-1), 4)
})
