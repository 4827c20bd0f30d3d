// A map of a million keys in the memory of the primary.

import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { turn } from '../../../kit/wait.js'
import { Peer } from '../conformance/peer.js'
import { startEmbedded } from './rig.js'

t.setTimeout(300_000)

const KEYS = 1_000_000
const BURST = 5000
/** Most keys that one turn of the primary may remove: some thousands fit into a slice. */
const PER_TURN = KEYS / 20
const RULES = { keyTtl: 600_000, streamSize: 100, streamTtl: 60_000, metaTtl: 600_000 }

/** @param {Peer} peer @param {string} channel @param {number} from @param {number} count @param {any} rules */
async function fill(peer, channel, from, count, rules) {
  for (let n = from; n < from + count; n += BURST) {
    await new Promise((resolve, reject) => {
      let left = BURST
      const done = error => (error ? reject(error) : --left === 0 && resolve(null))
      for (let i = n; i < n + BURST; i++)
        peer.broker.maps.publish(channel, `key${(i * 7919) % KEYS}`, '1', rules, {}, done)
    })
  }
}

/** @param {Peer} peer @param {string} channel @returns {Promise<{keys: number, pages: number, ordered: boolean}>} */
async function list(peer, channel) {
  const query = { limit: 1000, key: '', epoch: '', upTo: 0, maxBytes: 0 }
  let [keys, pages, last, ordered] = [0, 0, '', true]
  for (let cursor = ''; pages === 0 || cursor !== ''; ) {
    const page = await peer.broker.maps.state(channel, { ...query, cursor }, RULES)
    for (const { keyed } of page.entries) {
      if (keyed.key <= last) ordered = false
      last = keyed.key
    }
    keys += page.entries.length
    pages++
    ;({ cursor } = page)
  }
  return { keys, pages, ordered }
}

t.test('a million keys', async t => {
  const rig = await startEmbedded(t, { maxBytes: 2 ** 30 })
  const [a, b] = [await Peer.join(rig), await Peer.join(rig)]
  const before = process.memoryUsage().rss
  const begun = performance.now()
  await fill(a, 'm', 0, KEYS, RULES)
  const took = (performance.now() - begun) / 1000
  const bytes = (process.memoryUsage().rss - before) / KEYS
  t.comment(`${Math.round(KEYS / took)} writes/s, ${Math.round(bytes)} bytes of RSS per key`)
  t.same(await b.broker.maps.stats('m'), { keys: KEYS })
  t.ok(bytes < 1000, `${bytes} bytes per key`)

  const listing = performance.now()
  t.match(await list(b, 'm'), { keys: KEYS, ordered: true })
  t.comment(`listed in ${((performance.now() - listing) / 1000).toFixed(1)} s`)

  // All of them expire at once; the primary serves requests meanwhile.
  const keys = () => rig.host.drain().maps.keys
  const expiring = performance.now()
  rig.pass(RULES.keyTtl + 5000)
  let most = 0
  let turns = 0
  for (let before = keys(); before > 0; turns++) {
    await turn()
    const now = keys()
    most = Math.max(most, before - now)
    before = now
  }
  t.comment(
    `expired in ${((performance.now() - expiring) / 1000).toFixed(1)} s, ${turns} turns, up to ${most} keys in each`,
  )
  t.ok(most < PER_TURN, `${most} keys in one turn`)
  t.match(await list(b, 'm'), { keys: 0 })

  await fill(a, 'm', 0, 200_000, RULES)
  await a.broker.maps.clear('m')
  t.match(await list(b, 'm'), { keys: 0 })
})

t.test('engine.memory.max_bytes limits a map in bytes', async t => {
  const maxBytes = 64 * 2 ** 20
  const rig = await startEmbedded(t, { maxBytes })
  const a = await Peer.join(rig)
  const error = await fill(a, 'm', 0, KEYS, { ...RULES, keyTtl: 0 }).catch(error => error)
  t.equal(error, errors.internal)
  const { keys } = await a.broker.maps.stats('m')
  t.ok(keys > 100_000 && keys < 400_000, `${keys} keys`)
  t.match(await list(a, 'm'), { keys })
  t.ok(rig.log.lines.some(({ msg }) => /max_bytes/.test(msg)))
})
