import { count } from '../../src/base/format.js'
import * as ours from './figures.js'
import { commonDifferences, connectionsText, dronesFor, gatewayFor, openingRate, scaled } from './sizing.js'

const CHANNEL = 'big'
const IDLE_CONNECTIONS = 100_000
const PING_SECONDS = 20
const OPENED_PER_SECOND = 5000
const IDLE_NAME = '100,000 idle'

/**
 * Published steps. `clients` subscribe to the channel; `messages` are published on it per second.
 * @type {readonly {clients: number, messages: number, latency: string, machine: string}[]}
 */
const LOADS = Object.freeze([
  { clients: 500, messages: 30, latency: 'under 35 ms', machine: 't2.medium' },
  { clients: 3000, messages: 4, latency: 'under 250 ms', machine: 't2.medium' },
  { clients: 500, messages: 250, latency: '2.8 ms', machine: 'm3.2xlarge' },
  { clients: 3000, messages: 60, latency: '15 ms', machine: 'm3.2xlarge' },
])

/** @param {{clients: number, messages: number}} load */
const nameOf = ({ clients, messages }) => `${count(clients)} clients × ${messages}/s`

/** @type {import('./contract.js').Scenario} */
export const bigChannel = {
  name: 'big-channel',
  summary: 'one channel with all clients on it, and 100,000 idle connections',
  source: 'Carotene (Erlang)',
  machine: 't2.medium (2 vCPU, 4 GB) and m3.2xlarge',
  load: 'one channel: 500 clients × 30/s, 3,000 × 4/s, 500 × 250/s, 3,000 × 60/s; then 100,000 idle connections with a keep-alive every 20 s',
  scaled: 'connections; the message rates and the keep-alive interval stay the same',
  plan(options) {
    const idle = scaled(IDLE_CONNECTIONS, options.scale)
    const maxConnections = Math.max(idle, ...LOADS.map(({ clients }) => scaled(clients, options.scale)))
    const rate = openingRate(OPENED_PER_SECOND, options)
    return {
      drones: dronesFor(maxConnections, options),
      gateway: gatewayFor(maxConnections, options, { client: { ping_interval: `${PING_SECONDS}s` } }),
      size: {
        connections: maxConnections,
        text: `one channel with ${LOADS.map(({ clients, messages }) => `${count(scaled(clients, options.scale))} × ${messages}/s`).join(', ')}; then ${connectionsText(idle)} without messages`,
      },
      steps: [
        ...LOADS.map(load => {
          const n = scaled(load.clients, options.scale)
          return {
            name: nameOf(load),
            settings: {
              n,
              rate,
              channels: [CHANNEL],
              publish_channels: [CHANNEL],
              publish_rate: load.messages,
              publish_size: 128,
            },
            ramp: Math.ceil(n / rate),
            settle: 3,
            seconds: 30,
          }
        }),
        {
          name: IDLE_NAME,
          settings: { n: idle, rate, channels: [], publish_rate: 0 },
          ramp: Math.ceil(idle / rate),
          settle: PING_SECONDS,
          seconds: 2 * PING_SECONDS,
        },
      ],
      differs: [
        ...commonDifferences(options),
        'The published runs do not give the message size; here it is 128 bytes.',
        'They used two machines of different sizes; here all steps ran on one machine.',
        'Messages are published over the server API.',
      ],
    }
  },
  published: [
    ...LOADS.map(load => ({
      label: `Latency, ${nameOf(load)}`,
      value: load.latency,
      note: load.machine,
      ours: ours.of(nameOf(load)).meanAndMax,
    })),
    {
      label: 'Idle connections',
      value: '100,000 in 4 GB',
      note: 't2.medium, keep-alive every 20 s, answered with a pong',
      ours: ours.of(IDLE_NAME).connections,
    },
  ],
}
