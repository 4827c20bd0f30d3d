// Accounting of requests while workers and nodes are killed: every call returns, each client of a complete request has
// answered or is gone, and returned answers are those that the clients sent.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { fetch } from '../../kit/fetch.js'
import { freePort } from '../../kit/ports.js'
import { RawClient } from '../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { pause, until } from '../../kit/wait.js'
import { open, token, tokenClient } from './support.js'

needsRedis(t)
t.setTimeout(900_000)

const NODES = 3
const CLIENTS = 36
const CALLERS = 6
const KILLED_WORKERS = 20
const KILLED_NODES = 5
/** Longer than the lease of a dead node (7 s), ms. */
const TIMEOUT = 30_000
/** For the survey before a request (5 s), and a busy machine, ms. */
const MORE = 30_000

/** @typedef {Awaited<ReturnType<typeof startNode>>} Node */

const redis = await startRedis(t)
/** @type {(Node | null)[]} */
const nodes = []
const ports = await Promise.all(Array.from({ length: NODES }, () => freePort()))
/** @param {number} n */
const start = async n => {
  nodes[n] = await startNode(t, redis.address, {
    config: {
      http_server: { port: ports[n] },
      client: tokenClient({ acks: { enabled: true } }),
      channel: { without_namespace: open },
    },
  })
}
await Promise.all(ports.map((_, n) => start(n)))

let running = true
/** Answers that clients have sent: id of the request, client. */
const given = new Set()
let accepted = 0
let refused = 0

/** A client that reconnects; it answers some time later, or leaves instead. @param {number} n */
async function runClient(n) {
  for (let round = 0; running; round++) {
    const node = nodes[(n + round) % NODES]
    try {
      if (!node) throw new Error('killed')
      const client = await RawClient.connected(node.ws, { token: token({ sub: `u${n % 6}` }) })
      await client.subscribe('room')
      await answerAll(client)
      client.socket.terminate()
    } catch {
      await pause(100)
    }
  }
}

/** @param {RawClient} client */
async function answerAll(client) {
  const own = client.connect.client
  for (let count = 0; running; count++) {
    const { push } = await client.next(({ push }) => push?.message || push?.pub)
    const id = push.message?.data.$req.id ?? push.pub.tags.$ack
    // Sometimes it leaves: the request waits for nobody.
    if (count % 17 === 16) return
    await pause(Math.random() * 50)
    const data = `${id} ${own}`
    given.add(data)
    const { rpc } = await client.call('rpc', { method: '$ack', data: { id, data } })
    if (rpc) accepted++
    else refused++
  }
}

const outcomes = { complete: 0, empty: 0, refused: 0, lost: 0 }
/** @type {string[]} */
const faults = []

/** @param {any} acks */
function check({ sent, answered, gone, complete, truncated, answers }) {
  const figures = JSON.stringify({ sent, answered, gone, complete })
  if (!complete || truncated || answered + gone !== sent) faults.push(figures)
  if (answered !== Object.keys(answers).length)
    faults.push(`${figures}: ${Object.keys(answers).length} answers`)
  for (const [client, { data }] of Object.entries(answers))
    if (!data.endsWith(` ${client}`)) faults.push(`${client} sent ${data}`)
  outcomes[sent > 0 ? 'complete' : 'empty']++
  return Object.values(answers).map(({ data }) => data)
}

/** Answers returned to callers. @type {string[]} */
const returned = []

/** @param {number} n */
async function runCaller(n) {
  for (let round = 0; running; round++) {
    const node = nodes[(n + round) % NODES]
    if (!node) {
      await pause(20)
      continue
    }
    const wait = { timeout_ms: TIMEOUT }
    const [method, params] =
      round % 3 === 0
        ? ['publish', { channel: 'room', data: round, ack: wait }]
        : [
            'request',
            round % 3 === 1 ? { user: `u${round % 6}`, ...wait } : { channel: 'room', data: 1, ...wait },
          ]
    const begun = performance.now()
    try {
      const answer = await fetch(`${node.url}/api/${method}`, {
        method: 'POST',
        // A call whose worker is killed is not repeated.
        headers: { 'X-API-Key': 'key', Connection: 'close' },
        body: JSON.stringify(params),
      })
      const { result, error } = await answer.json()
      if (error && error.code !== 100) faults.push(JSON.stringify(error))
      if (error) outcomes.refused++
      else returned.push(...check(result.acks ?? result))
    } catch {
      outcomes.lost++
    }
    const took = performance.now() - begun
    if (took > TIMEOUT + MORE) faults.push(`${method} took ${Math.round(took)} ms`)
  }
}

t.test('no request hangs, and each client is accounted for', async t => {
  const clients = Array.from({ length: CLIENTS }, (_, n) => runClient(n))
  const callers = Array.from({ length: CALLERS }, (_, n) => runCaller(n))
  /** Waits until requests are complete again. @param {number} count */
  const completed = count => {
    const from = outcomes.complete
    return until(() => outcomes.complete >= from + count, 'complete requests')
  }
  await completed(20)
  for (let n = 0; n < KILLED_WORKERS; n++) {
    const node = /** @type {Node} */ (nodes[n % NODES])
    const known = node.workerPids.length
    const [pid] = node.workerPids.slice(-2)
    process.kill(pid, 'SIGKILL')
    await until(() => node.workerPids.length > known)
    await completed(10)
  }
  t.comment(JSON.stringify({ ...outcomes, accepted, late: refused }))
  for (let n = 0; n < KILLED_NODES; n++) {
    const place = n % NODES
    const node = /** @type {Node} */ (nodes[place])
    nodes[place] = null
    const workers = node.workerPids.slice(-2)
    node.process.kill('SIGKILL')
    for (const pid of workers) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has exited with its primary.
      }
    }
    await node.exited
    await completed(10)
    await start(place)
    await completed(10)
  }
  running = false
  await Promise.all(callers)
  t.strictSame(faults.slice(0, 5), [])
  t.equal(faults.length, 0)
  t.strictSame(returned.filter(answer => !given.has(answer)).slice(0, 5), [], 'answers that no client sent')
  t.comment(JSON.stringify({ ...outcomes, returned: returned.length, accepted, late: refused }))
  t.ok(outcomes.complete > 20 + 10 * (KILLED_WORKERS + 2 * KILLED_NODES))
  await Promise.all(nodes.map(node => node?.stop()))
  await Promise.all(clients)
})
