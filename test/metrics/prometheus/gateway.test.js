// Metrics of real gateways: any worker answers for all, and what it says is what clients have done.

import t from 'tap'
import { makeToken } from '../../clients/auth/jwt.js'
import { drivers } from '../../kit/drivers.js'
import { crowd, open } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { value } from './exposition.js'
import { scrape, settled } from './scrape.js'

/** @typedef {import('./scrape.js').Scrape} Scrape */

const SECRET = 'secret'
const config = {
  prometheus: { enabled: true },
  channel: { namespaces: [{ name: 'open', ...open }] },
  client: { token: { hmac_secret_key: SECRET }, allow_anonymous_connect_without_token: true },
}

/** A client that counts what it says and hears. */
class Counted {
  sent = { messages: 0, bytes: 0 }

  /** @param {RawClient} client */
  constructor(client) {
    this.client = client
    const send = client.socket.send.bind(client.socket)
    client.socket.send = (/** @type {string} */ data) => {
      this.sent.messages += data.split('\n').length
      this.sent.bytes += Buffer.byteLength(data)
      send(data)
    }
  }

  get received() {
    const { frames } = this.client
    return {
      messages: frames.reduce((sum, frame) => sum + frame.split('\n').length, 0),
      bytes: frames.reduce((sum, frame) => sum + Buffer.byteLength(frame), 0),
    }
  }
}

/** @returns {Promise<null>} after so long a scrape is made again */
const soon = () => new Promise(resolve => setTimeout(resolve, 3000, null))

for (const driver of drivers) {
  t.test(`${driver}: figures are what clients and the server API have done`, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    const tokens = ['anna', 'anna', 'boris', 'boris', 'clara', 'clara', '', '']
    const all = await Promise.all(
      tokens.map(async sub => {
        const one = new Counted(await RawClient.open(gateway.ws))
        await one.client.call('connect', sub === '' ? {} : { token: makeToken({ sub }, SECRET) })
        await one.client.subscribe('open:news')
        return one
      }),
    )
    await all[0].client.subscribe('open:other')
    t.match(await all[0].client.subscribe('unknown:channel'), { error: { code: 102 } })
    for (let n = 0; n < 10; n++) await gateway.api('publish', { channel: 'open:news', data: { n } })
    for (const { client } of all) for (let n = 0; n < 10; n++) await client.push('pub')
    t.match(await gateway.api('publish', { channel: 'unknown:channel', data: {} }), { error: { code: 102 } })
    await gateway.api('disconnect', { user: 'boris' })
    for (const { client } of all.slice(2, 4)) t.equal((await client.closed).code, 3503)
    await all[7].client.close()

    const sum = (/** @type {'sent' | 'received'} */ way, /** @type {'messages' | 'bytes'} */ unit) =>
      all.reduce((total, one) => total + one[way][unit], 0)
    const websocket = { transport: 'websocket' }
    /** @type {[name: string, labels: Record<string, string>, expected: number][]} */
    const figures = [
      ['centrifugo_node_num_users', {}, 3],
      ['centrifugo_node_num_subscriptions', {}, 6],
      ['centrifugo_node_num_channels', {}, 2],
      ['centrifugo_node_num_nodes', {}, 1],
      ['centrifugo_node_messages_sent_count', { type: 'publication' }, 10],
      ['centrifugo_node_action_count', { action: 'add_client' }, 8],
      ['centrifugo_client_connections_accepted', websocket, 8],
      ['centrifugo_client_connections_inflight', websocket, 5],
      ['centrifugo_client_num_reply_errors', { code: '102' }, 1],
      ['centrifugo_client_num_server_disconnects', { code: '3503' }, 2],
      ['centrifugo_client_num_server_disconnects', {}, 2],
      ['centrifugo_transport_messages_sent', websocket, sum('received', 'messages')],
      ['centrifugo_transport_messages_sent_size', websocket, sum('received', 'bytes')],
      ['centrifugo_transport_messages_received', websocket, sum('sent', 'messages')],
      ['centrifugo_transport_messages_received_size', websocket, sum('sent', 'bytes')],
      ['centrifugo_api_command_errors_total', { error: '102' }, 1],
      ['halley_connections', {}, 5],
      ['halley_connections_opened_total', {}, 8],
      ['halley_deliveries_total', {}, 80],
      ['halley_client_commands_total', { method: 'connect' }, 8],
      ['halley_client_commands_total', { method: 'subscribe' }, 10],
      ['halley_api_calls_total', { method: 'disconnect' }, 1],
      ['halley_clients', { ...websocket, codec: 'json' }, 5],
      ['halley_worker_clients', {}, 5],
      ['halley_worker_messages_sent_total', {}, sum('received', 'messages')],
      ['halley_worker_up', {}, 2],
      ['halley_worker_deaths_total', {}, 0],
      ['halley_node_info', { engine: 'memory', driver, node_version: process.version }, 1],
    ]
    // Each worker tells its figures when its own second is over.
    const wrong = (/** @type {Scrape} */ got) =>
      figures.filter(([name, labels, expected]) => value(got, name, labels) !== expected)
    const late = performance.now() + 30_000
    const got = await settled(gateway, got => wrong(got).length === 0 || performance.now() > late)
    for (const [name, labels, expected] of figures) {
      t.equal(value(got, name, labels), expected, `${name} ${JSON.stringify(labels)}`)
    }
  })
}

t.test('whichever worker is asked, it answers for all; counters never fall when one is killed', async t => {
  const gateway = await startGateway(t, config)
  const clients = await crowd(gateway)
  await Promise.all(clients.map(client => client.subscribe('open:news')))
  for (let n = 0; n < 20; n++) await gateway.api('publish', { channel: 'open:news', data: n })
  /** @type {Map<string, number>} */
  const before = new Map()
  /** @type {string[]} */
  const fallen = []
  let time = 0
  const watched = (/** @type {Scrape} */ got) => {
    // A worker's answer may be half a second older than that of another.
    const now = value(got, 'halley_snapshot_time_seconds')
    if (now <= time) return false
    time = now
    for (const { type, samples } of got.values()) {
      if (type === 'gauge') continue
      for (const { name, labels, value } of samples) {
        const id = name + JSON.stringify(labels)
        if (value < (before.get(id) ?? 0)) fallen.push(`${id}: ${before.get(id)} to ${value}`)
        before.set(id, value)
      }
    }
    return true
  }
  await settled(gateway, got => watched(got) && value(got, 'halley_deliveries_total') === 480)
  const all = await until(async () => {
    const scrapes = []
    while (scrapes.length < 8) scrapes.push(await scrape(gateway))
    return scrapes.every(got => value(got, 'halley_deliveries_total') === 480) ? scrapes : null
  })
  for (const got of all) {
    const { samples } = /** @type {any} */ (got.get('halley_process_resident_memory_bytes'))
    t.same(
      samples.map((/** @type {any} */ { labels }) => labels.worker),
      ['primary', '0', '1'],
    )
    t.equal(value(got, 'centrifugo_node_num_clients'), 24)
    t.equal(value(got, 'halley_worker_clients'), 24)
  }
  // On the node server all clients may have come to one worker.
  const { pid } = gateway.lines.find(
    ({ msg, worker }) =>
      msg === 'worker listens' && value(all[0], 'halley_worker_clients', { worker: String(worker) }) > 0,
  )
  process.kill(pid, 'SIGKILL')
  const got = await until(async () => {
    // A connection that the dead one was to take is lost, or waits for an answer for ever.
    const got = await Promise.race([scrape(gateway).catch(() => null), soon()])
    return got &&
      watched(got) &&
      value(got, 'halley_worker_deaths_total') === 1 &&
      value(got, 'halley_worker_up') === 2
      ? got
      : null
  })
  t.same(fallen, [])
  t.equal(value(got, 'halley_deliveries_total'), 480, 'what the dead one had done still counts')
  t.equal(value(got, 'halley_worker_messages_sent_total') >= 480, true)
  t.ok(value(got, 'centrifugo_node_num_clients') < 24)
})

t.test('while one worker hangs, the others say so', async t => {
  const gateway = await startGateway(t, { ...config, worker: { liveness_timeout: 0 } })
  await settled(gateway, got => value(got, 'halley_worker_up') === 2)
  const [hanging] = gateway.workerPids
  process.kill(hanging, 'SIGSTOP')
  t.teardown(() => process.kill(hanging, 'SIGCONT'))
  const got = await until(async () => {
    // Some of them come to the one that hangs, and now and then all.
    const answers = Array.from({ length: 12 }, () => scrape(gateway))
    for (const answer of answers) answer.catch(() => {})
    const got = await Promise.race([Promise.any(answers), soon()])
    return got && value(got, 'halley_worker_up') === 1 ? got : null
  })
  t.ok(value(got, 'halley_worker_sample_age_seconds') > 1.5)
  process.kill(hanging, 'SIGCONT')
  await settled(gateway, got => value(got, 'halley_worker_up') === 2)
})
