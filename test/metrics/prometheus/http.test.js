import t from 'tap'
import { mountMetrics } from '../../../src/metrics/prometheus/index.js'
import { Inbox, serve } from '../../clients/server/conformance/rig.js'
import { drivers } from '../../kit/drivers.js'
import { fetch } from '../../kit/fetch.js'
import { mockSnapshots as snapshots } from '../mock.js'
import { parse, value } from './exposition.js'

const NODE = { uid: 'this node' }
const never = new Promise(() => {})
const [snapshot] = snapshots({ seconds: 1, connections: 2000 })

/**
 * @param {any} t @param {'uws' | 'node'} driver
 * @param {object} [parts] of mountMetrics, over a view that answers at once
 */
async function metrics(t, driver, parts = {}) {
  /** @type {any[]} */
  const failures = []
  const { url } = await serve(t, driver, server =>
    mountMetrics({
      server,
      config: { prometheus: { enabled: true, handler_prefix: '/metrics' } },
      view: { latest: async () => snapshot },
      node: NODE,
      log: { error: (/** @type {any} */ fields) => failures.push(fields) },
      ...parts,
    }),
  )
  return { get: (options = {}) => fetch(`${url}/metrics`, options), url, failures }
}

/** @param {() => Promise<{ text: () => Promise<string> }>} get */
const scraped = async get => parse(await (await get()).text())

/** @param {any[]} nodes */
const info = nodes => ({ read: async () => JSON.stringify({ nodes }) })

for (const driver of drivers) {
  t.test(driver, async t => {
    t.test('a scrape gets the text format, never from a cache', async t => {
      const { get } = await metrics(t, driver)
      const answer = await get()
      t.equal(answer.status, 200)
      t.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
      t.equal(answer.headers.get('cache-control'), 'no-store')
      const got = parse(await answer.text())
      t.equal(value(got, 'centrifugo_node_num_clients'), snapshot.totals.connections.connected)
      t.equal(value(got, 'centrifugo_node_num_nodes'), 1)
    })

    t.test('HEAD gets no body, other methods get 405', async t => {
      const { get } = await metrics(t, driver)
      const head = await get({ method: 'HEAD' })
      t.equal(head.status, 200)
      t.equal(await head.text(), '')
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
        const answer = await get({ method })
        t.equal(answer.status, 405, method)
        t.equal(answer.headers.get('allow'), 'GET, HEAD')
      }
    })

    t.test('metrics are served if enabled, at the configured path', async t => {
      const off = await metrics(t, driver, { config: { prometheus: { enabled: false } } })
      t.equal((await off.get()).status, 404)
      const config = { prometheus: { enabled: true, handler_prefix: '/inside/figures' } }
      const elsewhere = await metrics(t, driver, { config })
      t.equal((await elsewhere.get()).status, 404)
      t.equal((await fetch(`${elsewhere.url}/inside/figures`)).status, 200)
    })

    t.test('a scrape gets 503 if the primary does not respond within two seconds', async t => {
      for (const latest of [() => never, () => Promise.reject(new Error('gone'))]) {
        const { get } = await metrics(t, driver, { view: { latest } })
        const answer = await get()
        t.equal(answer.status, 503)
        t.match(await answer.text(), /primary/)
      }
    })

    t.test('a client that leaves during a scrape causes no error', async t => {
      const asked = new Inbox()
      const view = { latest: () => new Promise(resolve => asked.put('asked', resolve)) }
      const { get, failures } = await metrics(t, driver, { view })
      const leaving = new AbortController()
      const left = t.rejects(get({ signal: leaving.signal }))
      const answer = await asked.next('asked')
      leaving.abort()
      await left
      const next = get()
      answer(snapshot)
      t.equal((await next).status, 200)
      t.same(failures, [])
    })

    t.test('simultaneous scrapes share a snapshot', async t => {
      let asked = 0
      const latest = async () => {
        asked++
        return snapshot
      }
      const { get } = await metrics(t, driver, { view: { latest } })
      const answers = await Promise.all(Array.from({ length: 20 }, () => get()))
      t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
      t.ok(asked < 5, `${asked} times`)
    })

    t.test('an invalid snapshot is logged and gets 500', async t => {
      const { get, failures } = await metrics(t, driver, { view: { latest: async () => ({}) } })
      t.equal((await get()).status, 500)
      t.equal(failures.length, 1)
      t.type(failures[0].err, Error)
    })
  })
}

t.test('users are those of this node', async t => {
  const nodes = [
    { uid: 'another', num_users: 1, num_channels: 2 },
    { uid: NODE.uid, num_users: 3, num_channels: 4 },
  ]
  const { get } = await metrics(t, 'node', { nodeInfo: info(nodes) })
  t.equal(value(await scraped(get), 'centrifugo_node_num_users'), 3)
})

t.test('users are not counted above 50,000 clients, or channels', async t => {
  const [many] = snapshots({ seconds: 1, connections: 120_000 })
  const [channels] = snapshots({ seconds: 1, connections: 2000 })
  for (const { sample } of channels.workers) if (sample) sample.channels = 30_000
  for (const latest of [many, channels]) {
    const nodeInfo = {
      read() {
        throw new Error('nobody is asked')
      },
    }
    const { get } = await metrics(t, 'node', { nodeInfo, view: { latest: async () => latest } })
    const answer = await get()
    t.equal(answer.status, 200)
    t.notOk(parse(await answer.text()).has('centrifugo_node_num_users'))
  }
})

t.test('if the workers do not respond, only users are omitted', async t => {
  for (const read of [() => never, () => Promise.reject(new Error('no answer'))]) {
    const { get } = await metrics(t, 'node', { nodeInfo: { read } })
    const answer = await get()
    t.equal(answer.status, 200)
    const got = parse(await answer.text())
    t.notOk(got.has('centrifugo_node_num_users'))
    t.ok(got.has('centrifugo_node_num_clients'))
  }
})

t.test('the number of nodes is that of the engine', async t => {
  const [redis] = snapshots({ seconds: 1, engine: 'redis' })
  const view = { latest: async () => redis }
  const known = await metrics(t, 'node', { view, nodes: () => 3 })
  t.equal(value(await scraped(known.get), 'centrifugo_node_num_nodes'), 3)
  const unknown = await metrics(t, 'node', { view })
  t.notOk((await scraped(unknown.get)).has('centrifugo_node_num_nodes'))
})
