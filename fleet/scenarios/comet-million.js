import { count } from '../../src/base/format.js'
import * as ours from './figures.js'
import { commonDifferences, connectionsText, dronesFor, gatewayFor, scaled } from './sizing.js'

const CONNECTIONS = 1_000_000
const PING_SECONDS = 20
const OPENED_PER_SECOND = 6000
/** 400,000 leave simultaneously. */
const LEAVING = 0.4
const LEAVE = 'many leave'
/**
 * Maximum simultaneous leaves if drones and gateway share the cores. After 400,000, two cores closed
 * connections for 37 s without a ping, and other clients disconnected.
 */
const MAX_AT_ONCE = 120_000
/**
 * Connections opening concurrently, of all local drones, or of each remote one. With 1,000 of each of 17 drones, two
 * cores lost more connections than they opened above 577,000.
 */
const MAX_OPENING = 1000

/** @type {import('./contract.js').Scenario} */
export const cometMillion = {
  name: 'comet-million',
  summary: 'a million idle Comet streams, a ping to each every 20 s',
  source: 'node-millenium with ec2-fleet',
  machine: 'Intel i7-2600 (4 cores, 8 threads), 16 GB, Node.js 0.8; 40 micro instances as drones',
  load: '1,000,000 long-lived HTTP responses, a ping written to every client every 20 s: 50,000 messages/s',
  scaled: 'connections, and with them the pings; the interval between two pings stays 20 s',
  plan(options) {
    const connections = scaled(CONNECTIONS, options.scale)
    const drones = dronesFor(connections, options)
    const leaving = connections * LEAVING
    const over = options.local && leaving > MAX_AT_ONCE ? Math.round(leaving / OPENED_PER_SECOND) : 0
    /** @type {import('./contract.js').Step['settings']} */
    const settings = {
      transport: 'uni_http_stream',
      n: connections,
      rate: OPENED_PER_SECOND,
      channels: [],
      concurrency: options.local ? Math.ceil(MAX_OPENING / drones) : MAX_OPENING,
    }
    return {
      drones,
      gateway: gatewayFor(connections, options, {
        client: { ping_interval: `${PING_SECONDS}s` },
        uni_http_stream: { enabled: true },
      }),
      size: {
        connections,
        text: `${connectionsText(connections)} over one-way HTTP streaming, ${count(connections / PING_SECONDS)} pings/s`,
      },
      steps: [
        {
          name: connectionsText(connections),
          settings,
          // `rate` limits the opening. With a ramp, all drones would start a process simultaneously, under full load.
          ramp: 0,
          settle: PING_SECONDS,
          seconds: 3 * PING_SECONDS,
        },
        {
          name: LEAVE,
          settings,
          ramp: 0,
          settle: 0,
          seconds: over + PING_SECONDS,
          disturbances: [{ at: 2, kind: /** @type {const} */ ('leave'), share: LEAVING, over }],
        },
      ],
      differs: [
        ...commonDifferences(options),
        'The published gateway was one process of Node.js 0.8 with one JS heap; this one has several worker processes.',
        ...(over > 0 ? [`${count(leaving)} clients leave within ${over} s instead of at once.`] : []),
        'Its clients did not use the Centrifuge protocol; here, each sends a connect command and waits for the reply.',
      ],
    }
  },
  published: [
    {
      label: 'Connections',
      value: '1,000,000',
      note: 'from 40 machines with 25,000 each',
      ours: ours.connections,
    },
    { label: 'Pings', value: '50,000/s', ours: ours.pings },
    {
      label: 'Connections opened',
      value: '5,000–7,000/s',
      note: 'this run: the busiest second; runs request at most 6,000/s',
      ours: ours.opening,
    },
    {
      label: 'Memory per connection',
      value: '10.1 KB: 4.1 JS heap, 2.2 native, 3.8 kernel',
      ours: ours.connectionMemory,
    },
    {
      label: 'Event-loop delay',
      value: 'about 100 ms average',
      note: 'with default garbage collection',
      ours: ours.ticks,
    },
    {
      label: 'Event-loop delay while 400,000 leave at once',
      value: '400 ms',
      note: 'this run: while 40 % leave',
      ours: ours.of(LEAVE).ticks,
    },
    { label: 'CPU', value: '2–3 of 8 cores', note: 'with idle collection off', ours: ours.cpu },
  ],
}
