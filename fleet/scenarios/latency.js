import { dronesFor, gatewayFor } from './sizing.js'

const CONNECTIONS = 10
const PUBLISHED = 100
const BYTES = 100

/** @type {import('./contract.js').Scenario} */
export const latency = {
  name: 'latency',
  summary:
    'a few clients and few messages: latency of an idle system; with --nodes from the first to the last one',
  source: '',
  machine: '',
  load: '10 WebSocket connections on the last node, each on a channel of its own; 100 messages/s of 100 bytes on the first node',
  scaled: 'nothing',
  plan(options) {
    return {
      drones: dronesFor(CONNECTIONS, options),
      gateway: { ...gatewayFor(CONNECTIONS, options), workers: 1 },
      size: {
        connections: CONNECTIONS,
        text: `${CONNECTIONS} connections, ${PUBLISHED} messages/s received`,
      },
      steps: [
        {
          name: `${CONNECTIONS} connections`,
          settings: {
            transport: 'websocket',
            n: CONNECTIONS,
            channels: [`s{1..${CONNECTIONS}}`],
            publish_channels: [`s{1..${CONNECTIONS}}`],
            publish_rate: PUBLISHED,
            publish_size: BYTES,
            publish_order: 'sequential',
            publish_via: 'single',
            publishers: 1,
          },
          across: true,
          ramp: 0,
          settle: 3,
          seconds: 20,
        },
      ],
      differs: [],
    }
  },
  published: [],
}
