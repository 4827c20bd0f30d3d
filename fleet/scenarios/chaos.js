import { count } from '../../src/base/format.js'
import { ownScenario } from './own.js'
import { connectionsText, workersFor } from './sizing.js'

const CHANNELS = 100
const OPENED_PER_SECOND = 2000

/** @type {readonly import('./contract.js').Disturbance[]} */
const DISTURBANCES = Object.freeze([
  { at: 4, kind: 'kill-worker' },
  { at: 9, kind: 'cut', share: 0.3 },
  { at: 14, kind: 'freeze-worker' },
  { at: 28, kind: 'reload' },
  { at: 32, kind: 'restart-workers' },
  { at: 36, kind: 'restart-gateway' },
  { at: 45, kind: 'kill-gateway' },
  { at: 54, kind: 'cut', share: 1 },
])

/** @type {readonly import('./contract.js').Disturbance[]} */
const REDIS = Object.freeze([
  { at: 20, kind: 'stop-redis' },
  { at: 24, kind: 'start-redis' },
  { at: 26, kind: 'kill-redis' },
  { at: 26.2, kind: 'start-redis' },
])

export const chaos = ownScenario({
  name: 'chaos',
  summary:
    'workers killed, frozen and replaced, the gateway killed, connections cut, Redis stopped: every message accounted for',
  load: '10,000 WebSocket connections on 100 channels with history and recovery, one message/s of 256 bytes to each; a worker killed with SIGKILL, another one stopped with SIGSTOP, a reload that needs new workers, a rolling restart, the gateway stopped with SIGTERM and restarted from its snapshot, and killed and restarted, 30 % and then all connections cut; with --redis, Redis stopped for 4 s, and killed with SIGKILL',
  scaled: 'connections; channels, messages and disturbances stay the same',
  clients: 10_000,
  measure({ n, target, redis, ...options }) {
    const rate = Math.min(OPENED_PER_SECOND, options.rate)
    const own = target ? DISTURBANCES.filter(({ kind }) => kind === 'cut') : DISTURBANCES
    const disturbances = redis && !target ? [...own, ...REDIS] : own
    const channels = [`s{1..${CHANNELS}}`]
    return {
      workers: Math.max(2, workersFor(n, options)),
      snapshot: true,
      config: {
        client: { recovery_max_publication_limit: 0, ping_interval: '10s' },
        shutdown: { timeout: '20s' },
      },
      // Publications of several minutes.
      channels: { history_size: 1000, history_ttl: '10m', force_recovery: true },
      text: `${connectionsText(n)} on ${CHANNELS} channels with recovery, ${count(n)} messages/s received, ${disturbances.length} disturbances`,
      steps: [
        {
          name: connectionsText(n),
          settings: {
            ...{ n, rate, channels, recover: true, backoff_min: 200, backoff_max: 2000 },
            ...{ publish_channels: channels, publish_rate: CHANNELS, publish_size: 256 },
            publish_order: 'sequential',
          },
          ramp: Math.ceil(n / rate),
          seconds: 60,
          disturbances: [...disturbances].sort((a, b) => a.at - b.at),
        },
      ],
    }
  },
})
