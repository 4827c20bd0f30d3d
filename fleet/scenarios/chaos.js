import { count } from '../../src/base/format.js'
import { connectionsText, dronesFor, gatewayFor, openingRate, scaled, workersFor } from './sizing.js'

const CONNECTIONS = 10_000
const SUBJECTS = 100
const BYTES = 256
const OPENED_PER_SECOND = 2000
const SECONDS = 60
/** Publications that a channel keeps: several times those of a minute. */
const HISTORY = 1000

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

/** @type {import('./contract.js').Scenario} */
export const chaos = {
  name: 'chaos',
  summary:
    'workers killed, frozen and replaced, the gateway killed, connections cut, Redis stopped: every message accounted for',
  source: '',
  machine: '',
  load: '10,000 WebSocket connections on 100 channels with history and recovery, one message/s of 256 bytes to each; a worker killed with SIGKILL, another one stopped with SIGSTOP, a reload that needs new workers, a rolling restart, the gateway ended with SIGTERM and started again from its snapshot, and killed and started again, 30 % and then all connections cut; with --redis, Redis stopped for 4 s, and killed with SIGKILL',
  scaled: 'connections; channels, messages and disturbances stay',
  plan(options) {
    const connections = scaled(CONNECTIONS, options.scale)
    const rate = openingRate(OPENED_PER_SECOND, options)
    const gateway = gatewayFor(
      connections,
      options,
      {
        client: { recovery_max_publication_limit: 0, ping_interval: '10s' },
        shutdown: { timeout: '20s' },
      },
      { history_size: HISTORY, history_ttl: '10m', force_recovery: true },
    )
    const own = options.target ? DISTURBANCES.filter(({ kind }) => kind === 'cut') : DISTURBANCES
    const disturbances = options.redis && !options.target ? [...own, ...REDIS] : own
    return {
      drones: dronesFor(connections, options),
      gateway: { ...gateway, workers: Math.max(2, workersFor(connections, options)), snapshot: true },
      size: {
        connections,
        text: `${connectionsText(connections)} on ${SUBJECTS} channels with recovery, ${count(connections)} messages/s received, ${disturbances.length} disturbances`,
      },
      steps: [
        {
          name: connectionsText(connections),
          settings: {
            transport: 'websocket',
            n: connections,
            rate,
            channels: [`s{1..${SUBJECTS}}`],
            recover: true,
            backoff_min: 200,
            backoff_max: 2000,
            publish_channels: [`s{1..${SUBJECTS}}`],
            publish_rate: SUBJECTS,
            publish_size: BYTES,
            publish_order: 'sequential',
            publishers: 1,
          },
          ramp: Math.ceil(connections / rate),
          settle: 3,
          seconds: SECONDS,
          disturbances: [...disturbances].sort((a, b) => a.at - b.at),
        },
      ],
      differs: [],
    }
  },
  published: [],
}
