import { count } from '../../src/base/format.js'
import * as ours from './figures.js'
import { commonDifferences, connectionsText, dronesFor, gatewayFor, openingRate, scaled } from './sizing.js'

const CONNECTIONS = 12_000_000
const PUBLISHED = 200_000
const PUBLISHERS = 8
const BYTES = 512
const OPENED_PER_SECOND = 10_000

/** @type {import('./contract.js').Scenario} */
export const oneToOne = {
  name: 'one-to-one',
  summary: 'twelve million clients, each on a channel of its own',
  source: 'MigratoryData',
  machine: 'Dell R610, 12 cores, 64 GB; 10 machines as drones, 1.2 million connections each',
  load: '12,000,000 connections, each on a subject of its own; 200,000 messages/s of 512 bytes from 8 publishers, on random subjects',
  scaled: 'connections, subjects and messages; each client gets one message a minute, as published',
  plan(options) {
    const connections = scaled(CONNECTIONS, options.scale)
    const messages = scaled(PUBLISHED, options.scale)
    const rate = openingRate(OPENED_PER_SECOND, options)
    const drones = Math.max(dronesFor(connections, options), options.local ? 1 : PUBLISHERS)
    return {
      drones,
      gateway: gatewayFor(connections, options),
      size: {
        connections,
        text: `${connectionsText(connections)}, each on a channel of its own, ${count(messages)} messages/s of ${BYTES} bytes`,
      },
      steps: [
        {
          name: connectionsText(connections),
          settings: {
            n: connections,
            rate,
            channels: [`s{1..${connections}}`],
            publish_channels: [`s{1..${connections}}`],
            publish_rate: messages,
            publish_size: BYTES,
            publish_order: 'random',
            publishers: Math.min(PUBLISHERS, drones),
          },
          ramp: Math.ceil(connections / rate),
          settle: 10,
          seconds: 120,
        },
      ],
      differs: [
        ...commonDifferences(options),
        'Messages are published over the server API, in batches.',
        ...(drones < PUBLISHERS ? [`${drones} of the 8 publishers sent the whole rate.`] : []),
        'The published server used 54 GB of heap for its clients; this run measures user-space memory per connection.',
      ],
    }
  },
  published: [
    { label: 'Connections', value: '12,000,000', ours: ours.connections },
    { label: 'Messages received', value: '200,000/s', note: '512 bytes', ours: ours.received },
    { label: 'Latency', value: '269.7 ms mean, 420 ms standard deviation, 2,024 ms max', ours: ours.latency },
    {
      label: 'User-space memory',
      value: '54 GB of heap',
      note: '4.7 KB for each of 12,000,000; this run: per connection',
      ours: ours.userMemory,
    },
    {
      label: 'Kernel memory per connection',
      value: '3 KB per socket',
      note: 'about 36 GB in total',
      ours: ours.kernelMemory,
    },
  ],
}
