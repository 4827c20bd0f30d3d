// Several gateways with the same load, in turn; and the gateway's own figures.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { rounded } from '../fleet/runner/figures.js'
import { measurement } from './measurement.js'

/** @import { StepResult } from '../fleet/runner/result.js' */
/** @import { Snapshot } from '../src/metrics/schema.js' */

/** Flags of Node.js, and `gc.idle` and `gc.interval`; null: the flags of `npm start`. */
const GC_VARIANTS = Object.freeze({
  default: { flags: [], idle: true, interval: '0s' },
  'idle-off': { flags: [], idle: false, interval: '0s' },
  'idle-off-2': { flags: [], idle: false, interval: '0s' },
  interval: { flags: ['--expose-gc'], idle: false, interval: '60s' },
  start: { flags: undefined, idle: true, interval: '0s' },
})

const gc = measurement({
  name: 'gc',
  summary: 'the published garbage-collection runs: idle HTTP streams, of which 40 % leave at once',
  clients: 15_000,
  variants: Object.keys(GC_VARIANTS),
  measure({ n, variant }) {
    const { flags, ...options } = GC_VARIANTS[/** @type {keyof typeof GC_VARIANTS} */ (variant)]
    const settings = { n, transport: /** @type {const} */ ('uni_http_stream'), channels: ['ch{own}'] }
    const leave = { at: 1, kind: /** @type {const} */ ('leave'), share: 0.4 }
    return {
      nodeFlags: flags,
      config: {
        uni_http_stream: { enabled: true },
        client: { ping_interval: '20s', pong_timeout: '19s' },
        gc: options,
      },
      steps: [
        { name: 'all', settings, settle: 0, seconds: 120 },
        { name: '40 % leave', settings, settle: 0, seconds: 30, disturbances: [leave] },
      ],
    }
  },
})

const ticks = measurement({
  name: 'ticks',
  summary: 'event-loop delay: clients with recoverable channels of their own idle, then all leave at once',
  clients: 19_000,
  measure({ n, seconds = 30 }) {
    const settings = { n, channels: ['a{own}', 'b{own}'], recover: true }
    const leave = { at: 1, kind: /** @type {const} */ ('leave'), share: 1 }
    return {
      channels: { history_size: 1, history_ttl: '60s', force_recovery: true },
      config: { client: { ping_interval: '25s', channel_position_check_delay: '10s' } },
      steps: [
        { name: 'idle', settings, seconds },
        { name: 'all leave', settings, settle: 0, seconds, disturbances: [leave] },
      ],
    }
  },
})

const batching = measurement({
  name: 'batching',
  summary: 'one channel with batch_max_delay, and without',
  clients: 3000,
  variants: ['at once', 'batches of 50 ms'],
  measure({ n, variant }) {
    const settings = {
      n,
      channels: ['quotes'],
      publish_channels: ['quotes'],
      publish_rate: 60,
      publish_size: 512,
    }
    return {
      channels: variant === 'at once' ? {} : { batch_max_delay: '50ms' },
      steps: [{ name: 'one channel', settings }],
    }
  },
})

const conflation = measurement({
  name: 'conflation',
  summary:
    '1,000 updates/s in ten channels, each sent, or the newest ones with batch_flush_latest (others are missing)',
  clients: 20,
  variants: ['each update', 'newest ones'],
  measure({ n, variant }) {
    const channels = Array.from({ length: 10 }, (_, i) => `key${i}`)
    const settings = { n, channels, publish_channels: ['key{0..9}'], publish_rate: 1000, publish_size: 100 }
    return {
      workers: 1,
      channels: variant === 'each update' ? {} : { batch_max_delay: '100ms', batch_flush_latest: true },
      steps: [{ name: 'updates', settings: { ...settings, publish_order: 'sequential' } }],
    }
  },
})

const HOOKS = Object.freeze({
  none: '',
  passes: 'export function publish() {}',
  reads: 'export function publish({ data }) { if (data.s < 0) throw new Error("negative") }',
  changes: 'export function publish({ data, user }) { return { data: { s: data.s, by: user } } }',
})

const hooks = measurement({
  name: 'hooks',
  summary: 'publish handlers of a hooks module: clients publish into a channel without subscribers',
  clients: 1,
  variants: Object.keys(HOOKS),
  measure: ({ n, variant }) => ({
    workers: 1,
    async setup({ folder }) {
      const source = HOOKS[/** @type {keyof typeof HOOKS} */ (variant)]
      const module = source && join(folder, 'hooks.mjs')
      if (module) await writeFile(module, source)
      return { config: { hooks: { module } } }
    },
    steps: [
      {
        name: 'publish',
        settings: {
          ...{
            n,
            channels: ['other'],
            publish_channels: ['bench{1..32}'],
            publish_rate: 1,
            publish_via: 'client',
          },
          ...{ publish_flat: true, publish_lanes: 32, publish_size: 100, publish_order: 'sequential' },
        },
      },
    ],
  }),
})

const lifecycle = measurement({
  name: 'lifecycle',
  summary: 'the lifecycle log: clients connect, subscribe to a channel of their own, and leave',
  clients: 2000,
  variants: ['none', 'file'],
  measure: ({ n, variant, seconds = 20 }) => ({
    workers: 1,
    setup: async ({ folder }) => ({
      config: { lifecycle: { file: { path: variant === 'file' ? join(folder, 'lifecycle.log') : '' } } },
    }),
    steps: [{ name: 'churn', settings: { n, channels: ['own-{own}'], churn: n / 4 }, seconds }],
  }),
})

/** A backend that admits each client after 5 ms. It prints its port. */
const BACKEND = `require('node:http').createServer((request, response) => {
  request.resume()
  setTimeout(() => response.end('{"result":{"user":"bench"}}'), 5)
}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`

const proxy = measurement({
  name: 'proxy',
  summary: 'connects accepted by an event proxy, and the latency of other clients meanwhile',
  clients: 2000,
  variants: ['without', 'proxy'],
  measure: ({ n, variant }) => ({
    workers: 1,
    async setup({ teardown }) {
      if (variant === 'without') return {}
      const backend = spawn(process.execPath, ['-e', BACKEND], { stdio: ['ignore', 'pipe', 'inherit'] })
      teardown(() => backend.kill())
      const [port] = await once(backend.stdout, 'data')
      const endpoint = `http://127.0.0.1:${Number(port)}/connect`
      const connect = { enabled: true, endpoint, timeout: '30s', http: { max_connections: 128 } }
      return { config: { client: { proxy: { connect } } } }
    },
    steps: [
      {
        name: 'churn',
        settings: {
          ...{ n, concurrency: n, channels: [`s{random 1..${Math.ceil(n / 4)}}`], churn: n / 4 },
          ...{ publish_channels: [`s{1..${Math.ceil(n / 4)}}`], publish_rate: 100, publish_size: 100 },
        },
      },
    ],
  }),
})

/** Self-signed; `cert`: file. @param {string} folder */
async function certificate(folder) {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const names = ['-subj', '/CN=bench', '-addext', 'subjectAltName=IP:127.0.0.1']
  execFileSync('openssl', ['req', '-x509', ...kind, ...names, '-out', cert, '-keyout', key], {
    stdio: 'pipe',
  })
  return { cert, cert_pem: await readFile(cert, 'utf8'), key_pem: await readFile(key, 'utf8') }
}

const tls = measurement({
  name: 'tls',
  summary:
    'TLS (ECDSA, P-256; needs openssl) beside plain WebSockets: memory, connects, deliveries of one worker',
  clients: 2000,
  variants: ['uws, plain', 'uws, TLS', 'node, plain', 'node, TLS'],
  measure({ n, variant = '' }) {
    const [driver, kind] = variant.split(', ')
    const settings = { n: 2 * n, channels: ['bench'], publish_channels: ['bench'] }
    return {
      workers: 1,
      config: { http_server: { driver }, client: { ping_interval: '1h' } },
      async setup({ folder }) {
        if (kind === 'plain') return {}
        const { cert, ...tls } = await certificate(folder)
        // Drones trust it.
        process.env.NODE_EXTRA_CA_CERTS = cert
        return { config: { http_server: { tls: { enabled: true, ...tls } } } }
      },
      steps: [
        { name: 'first half', settings: { ...settings, n } },
        { name: 'all', settings },
        { name: 'deliveries', settings: { ...settings, publish_rate: 10, publish_size: 100 } },
      ],
    }
  },
  figures: ([first, further]) => ({
    bytes_per_further_connection: grownBy(first, further, further.connections.open - first.connections.open),
  }),
})

/** @param {StepResult} before @param {StepResult} after both idle @param {number} count @returns {number} bytes for each */
const grownBy = (before, after, count) =>
  Math.round(((after.server?.memory ?? 0) - (before.server?.memory ?? 0)) / count)

const SUBSCRIPTIONS = 10

const channels = measurement({
  name: 'channels',
  summary:
    'ten subscriptions of each client; with --redis, its connections are cut (--history: nothing is missing)',
  clients: 10_000,
  measure({ n, redis }) {
    const own = Array.from({ length: SUBSCRIPTIONS }, (_, k) => `c${k}-{own}`)
    const publish = { publish_channels: [`c0-{1..${n}}`], publish_rate: 200, publish_size: 100 }
    return {
      config: { client: { channel_limit: 128 } },
      steps: [
        { name: 'connected', settings: { n, channels: [] } },
        { name: 'subscribed', settings: { n, channels: own } },
        {
          name: 'delivering',
          settings: { n, channels: own, ...publish, publish_order: 'sequential' },
          disturbances: redis ? [{ at: 2, kind: 'cut-redis' }] : [],
        },
      ],
    }
  },
  figures([connected, subscribed]) {
    if (!subscribed) return {}
    const subscriptions = subscribed.connections.open * SUBSCRIPTIONS
    /** @param {'connectCpu' | 'redisConnectCpu'} name of us for each connection */
    const cpu = name => rounded((subscribed.server[name] - connected.server[name]) / SUBSCRIPTIONS, 1)
    const { redisMemory } = subscribed.server
    return {
      subscriptions,
      bytes_per_subscription: grownBy(connected, subscribed, subscriptions),
      subscribe_seconds: rounded(subscribed.ramp.seconds, 1),
      subscribe_cpu_us: cpu('connectCpu'),
      ...(redisMemory !== null && {
        redis_bytes_per_subscription: Math.round(
          (redisMemory - connected.server.redisMemory) / subscriptions,
        ),
        redis_subscribe_cpu_us: cpu('redisConnectCpu'),
      }),
    }
  },
})

/** @param {number} reported by the gateway @param {number} measured @returns {number} per cent */
const deviation = (reported, measured) => rounded((reported / measured - 1) * 100, 2)

/** @param {Snapshot['workers'][number]} worker @returns {number} ms */
const tickMax = ({ sample }) => sample?.loop.ticks.max ?? 0
// An idle worker measures a wake-up every 250 ms: of a stop, it shows all but that at least.
const BLOCK_MS = 600
const SHOWN_MS = BLOCK_MS - 300

/**
 * Compares the gateway's figures with those of drones and kernel, then briefly stops a worker, and kills one.
 * @param {import('../fleet/scenarios/contract.js').Work} work
 */
async function watchGateway({ servers, fleet }) {
  const [gateway] = servers.gateways
  // The next snapshot may have begun before the end of the load.
  for (let n = 0; n < 2; n++) await gateway.next()
  const { snapshot } = await gateway.next()
  const { totals, counters } = /** @type {Snapshot} */ (snapshot)
  const ps = execFileSync('ps', ['-o', 'rss=', '--pid', String(gateway.pid), '--ppid', String(gateway.pid)])
  const rss = String(ps)
    .trim()
    .split(/\s+/)
    .reduce((sum, kb) => sum + Number(kb) * 1024, 0)
  const drones = fleet.snapshot()
  const began = performance.now()
  const blocked = gateway.next((/** @type {Snapshot} */ { workers }) =>
    workers.some(one => tickMax(one) > SHOWN_MS),
  )
  await gateway.freezeWorker(0, BLOCK_MS)
  const shown = await blocked
  const delays = /** @type {Snapshot} */ (shown.snapshot).workers.map(tickMax).sort((a, b) => b - a)
  await sleep(1000)
  const killed = gateway.next((/** @type {Snapshot} */ { events }) =>
    events.some(({ kind }) => kind === 'worker_died'),
  )
  const killedAt = performance.now()
  await gateway.disturb('kill-worker', 1, 0)
  return {
    connections_off_pct: deviation(totals.connections.connected, drones.gauges.open),
    accepts_off_pct: deviation(counters.accepts, drones.counters.opened),
    deliveries_off_pct: deviation(counters.deliveries, drones.counters.received),
    publishes_off_pct: deviation(counters.publishes, drones.counters.published),
    rss_off_pct: deviation(totals.memory.rss, rss),
    block_shown_ms: Math.round(shown.at - began),
    block_tick_max_ms: rounded(delays[0], 1),
    block_others_max_ms: rounded(delays[1] ?? 0, 1),
    kill_shown_ms: Math.round((await killed).at - killedAt),
  }
}

const watch = measurement({
  name: 'watch',
  summary:
    "the gateway's figures beside those of drones and kernel; delays until a stopped and a killed worker show",
  clients: 10_000,
  measure({ n, seconds = 20 }) {
    const settings = { n, channels: ['s{1..100}'], publish_channels: ['s{1..100}'], publish_size: 200 }
    return {
      workers: 2,
      steps: [
        { name: 'load', settings: { ...settings, publish_rate: 300 }, seconds },
        { name: 'faults', settings, settle: 0, work: watchGateway },
      ],
    }
  },
  figures: ([{ gateway, server }]) => ({ cpu_off_pct: deviation(gateway.cpu, server.cpu) }),
})

export const GATEWAYS = [gc, ticks, batching, conflation, hooks, lifecycle, proxy, tls, channels, watch]
