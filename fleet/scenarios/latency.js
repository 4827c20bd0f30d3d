import { ownScenario } from './own.js'

const CLIENTS = 10

export const latency = ownScenario({
  name: 'latency',
  summary:
    'a few clients and few messages: latency of an idle system; with --nodes from the first to the last one',
  load: '10 WebSocket connections on the last node, each on a channel of its own; 100 messages/s of 100 bytes on the first node',
  scaled: 'nothing',
  clients: CLIENTS,
  measure: () => ({
    workers: 1,
    text: `${CLIENTS} connections, 100 messages/s received`,
    steps: [
      {
        name: `${CLIENTS} connections`,
        settings: {
          ...{ n: CLIENTS, channels: [`s{1..${CLIENTS}}`], publish_channels: [`s{1..${CLIENTS}}`] },
          ...{ publish_rate: 100, publish_size: 100, publish_order: 'sequential', publish_via: 'single' },
        },
        across: true,
        seconds: 20,
      },
    ],
  }),
})
