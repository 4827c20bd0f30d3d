import { count } from '../../src/base/format.js'
import { connectionsText, dronesFor, gatewayFor, openingRate, scaled } from './sizing.js'

const CONNECTIONS = 100_000
const REOPENED_PER_SECOND = 200_000 / 60
const CHANNELS = 1000
const MESSAGE_BYTES = 256
const OPENED_PER_SECOND = 5000

/** @type {import('./contract.js').Scenario} */
export const churn = {
  name: 'churn',
  summary: 'connections are closed and reopened all the time, and the others miss no message',
  source: '',
  machine: '',
  load: '100,000 WebSocket connections, 200,000 a minute of them closed and reopened; each on one of 1,000 channels, one message/s of 256 bytes to each',
  scaled: 'connections, channels, and reopened connections; each client gets one message/s at every scale',
  plan(options) {
    const connections = scaled(CONNECTIONS, options.scale)
    const channelCount = scaled(CHANNELS, options.scale)
    const reopened = REOPENED_PER_SECOND * options.scale
    const rate = openingRate(OPENED_PER_SECOND, options)
    return {
      drones: dronesFor(connections, options),
      gateway: gatewayFor(connections, options),
      size: {
        connections,
        text: `${connectionsText(connections)}, ${count(reopened * 60)} a minute closed and reopened, one message/s to each`,
      },
      steps: [
        {
          name: connectionsText(connections),
          settings: {
            transport: 'websocket',
            n: connections,
            rate,
            channels: [`s{1..${channelCount}}`],
            publish_channels: [`s{1..${channelCount}}`],
            publish_rate: channelCount,
            publish_size: MESSAGE_BYTES,
            publish_order: 'sequential',
            publishers: 1,
            churn: reopened,
          },
          ramp: Math.ceil(connections / rate),
          settle: 5,
          seconds: 60,
        },
      ],
      differs: [],
    }
  },
  published: [],
}
