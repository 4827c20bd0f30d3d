import { count } from '../../src/charts/format.js'
import * as ours from './figures.js'
import { commonDifferences, connectionsText, dronesFor, gatewayFor, openingRate, scaled } from './sizing.js'

const CHANNEL = 'big'
const IDLE = 100_000
const PING_SECONDS = 20
const OPENED = 5000
const IDLE_NAME = '100,000 idle'

/** @type {readonly {clients: number, rate: number, latency: string, machine: string}[]} */
const LOADS = Object.freeze([
  { clients: 500, rate: 30, latency: 'under 35 ms', machine: 't2.medium' },
  { clients: 3000, rate: 4, latency: 'under 250 ms', machine: 't2.medium' },
  { clients: 500, rate: 250, latency: '2.8 ms', machine: 'm3.2xlarge' },
  { clients: 3000, rate: 60, latency: '15 ms', machine: 'm3.2xlarge' },
])

/** @param {{clients: number, rate: number}} load */
const nameOf = ({ clients, rate }) => `${count(clients)} clients × ${rate}/s`

/** @type {import('./contract.js').Scenario} */
export const bigChannel = {
  name: 'big-channel',
  summary: 'one channel with everybody on it, and 100,000 idle connections',
  source: 'Carotene (Erlang)',
  machine: 't2.medium (2 vCPU, 4 GB) and m3.2xlarge',
  load: 'one channel: 500 clients × 30/s, 3,000 × 4/s, 500 × 250/s, 3,000 × 60/s; then 100,000 idle connections with a keep-alive every 20 s',
  scaled: 'connections; the rates of the channel and the interval between two keep-alives stay',
  plan(options) {
    const idle = scaled(IDLE, options.scale)
    const most = Math.max(idle, ...LOADS.map(({ clients }) => scaled(clients, options.scale)))
    const rate = openingRate(OPENED, options)
    return {
      drones: dronesFor(most, options),
      gateway: gatewayFor(most, options, { client: { ping_interval: `${PING_SECONDS}s` } }),
      size: {
        connections: most,
        text: `one channel with ${LOADS.map(({ clients, rate: each }) => `${count(scaled(clients, options.scale))} × ${each}/s`).join(', ')}; then ${connectionsText(idle)} that are idle`,
      },
      steps: [
        ...LOADS.map(load => {
          const n = scaled(load.clients, options.scale)
          return {
            name: nameOf(load),
            settings: {
              transport: /** @type {const} */ ('websocket'),
              n,
              rate,
              channels: [CHANNEL],
              publish_channels: [CHANNEL],
              publish_rate: load.rate,
              publish_size: 128,
              publishers: 1,
            },
            ramp: Math.ceil(n / rate),
            settle: 3,
            seconds: 30,
          }
        }),
        {
          name: IDLE_NAME,
          settings: { transport: 'websocket', n: idle, rate, channels: [], publish_rate: 0 },
          ramp: Math.ceil(idle / rate),
          settle: PING_SECONDS,
          seconds: 2 * PING_SECONDS,
        },
      ],
      differs: [
        ...commonDifferences(options),
        'The published runs do not say how long a message was; here it has 128 bytes.',
        'They were made on two machines of different size; here all steps ran on the same one.',
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
      note: 't2.medium, keep-alive every 20 s and a pong back',
      ours: ours.of(IDLE_NAME).connections,
    },
  ],
}
