import { count } from '../../src/base/format.js'
import * as ours from './figures.js'
import {
  commonDifferences,
  connectionsText,
  dronesFor,
  gatewayFor,
  OPEN,
  openingRate,
  scaled,
} from './sizing.js'

const CONNECTIONS = 1_000_000
const GROUP = 10
/** 28 million a minute */
const RECEIVED = 28e6 / 60
/** 200,000 a minute */
const CHURN = 200_000 / 60
const BYTES = 100
const OPENED_PER_SECOND = 5000

/** @type {import('./contract.js').Scenario} */
export const personalAndGroup = {
  name: 'personal-and-group',
  summary: 'a million clients on a personal and a group channel, while many are closed and reopened',
  source: 'Centrifugo',
  machine: '20 pods, Redis sharded over 5 instances',
  load: '1,000,000 WebSocket connections, each on a personal channel and a group channel of 10; 28 million messages a minute received; 200,000 connects and disconnects a minute',
  scaled: 'connections, messages, and reopened connections; a group always has 10 clients',
  plan(options) {
    const connections = scaled(CONNECTIONS, options.scale, GROUP)
    const groups = Math.ceil(connections / GROUP)
    // Half to personal channels, half to groups, where each is received ten times.
    const messages = (2 * RECEIVED * options.scale) / (GROUP + 1)
    const churn = CHURN * options.scale
    const rate = openingRate(OPENED_PER_SECOND, options)
    return {
      // One drone publishes to personal channels, another to groups.
      drones: Math.max(2, dronesFor(connections, options)),
      gateway: gatewayFor(connections, options, {
        channel: {
          namespaces: [
            { name: 'personal', ...OPEN },
            { name: 'group', ...OPEN },
          ],
        },
      }),
      size: {
        connections,
        text: `${connectionsText(connections)} on a personal channel and on one of ${count(groups)} groups, ${count(RECEIVED * options.scale)} messages/s received, ${count(churn * 60)} connections a minute closed and reopened`,
      },
      steps: [
        {
          name: connectionsText(connections),
          settings: {
            n: connections,
            rate,
            channels: ['personal:{own}', `group:{group ${GROUP}}`],
            publish_channels: [`personal:{1..${connections}}`, `group:{1..${groups}}`],
            publish_rate: messages,
            publish_size: BYTES,
            publish_order: 'sequential',
            publishers: 2,
            churn,
          },
          ramp: Math.ceil(connections / rate),
          settle: 10,
          seconds: 60,
        },
      ],
      differs: [
        ...commonDifferences(options),
        'The published run does not say how messages were split between personal and group channels; here the split is even.',
        'The published 200,000 connects and disconnects a minute are taken as 200,000 of each.',
        ...(options.target || options.redis
          ? []
          : ['The gateway kept channels in its own memory, not in Redis (--redis takes one Redis server).']),
        'In the published run, publishers, Redis and gateway had their own machines.',
      ],
    }
  },
  published: [
    { label: 'Connections', value: '1,000,000', ours: ours.connections },
    {
      label: 'Messages received',
      value: 'about 500,000/s',
      note: '28 million a minute, of about 100 bytes',
      ours: ours.received,
    },
    { label: 'Latency, 99th percentile', value: '200 ms', ours: ours.p99 },
    { label: 'CPU of the servers', value: '40 CPUs', ours: ours.cpu },
    { label: 'Memory per connection', value: '30 KB', note: '27 GB for the servers', ours: ours.userMemory },
  ],
}
