import { count } from '../../src/charts/format.js'
import { connectionsText, dronesFor, gatewayFor, openingRate, scaled } from './sizing.js'

const CONNECTIONS = 100_000
/** 200,000 a minute */
const CHURN = 200_000 / 60
const SUBJECTS = 1000
const BYTES = 256
const OPENED = 5000

/** @type {import('./contract.js').Scenario} */
export const churn = {
  name: 'churn',
  summary: 'connections come and go all the while, and those that stay miss nothing',
  source: '',
  machine: '',
  load: '100,000 WebSocket connections, 200,000 a minute of them closed and opened anew; each on one of 1,000 channels, one message/s of 256 bytes to each',
  scaled:
    'connections, channels, and connections that come and go; each client gets one message/s at every scale',
  plan(options) {
    const connections = scaled(CONNECTIONS, options.scale)
    const subjects = scaled(SUBJECTS, options.scale)
    const leaving = CHURN * options.scale
    const rate = openingRate(OPENED, options)
    return {
      drones: dronesFor(connections, options),
      gateway: gatewayFor(connections, options),
      size: {
        connections,
        text: `${connectionsText(connections)}, ${count(leaving * 60)} a minute closed and opened anew, one message/s to each`,
      },
      steps: [
        {
          name: connectionsText(connections),
          settings: {
            transport: 'websocket',
            n: connections,
            rate,
            channels: [`s{1..${subjects}}`],
            publish_channels: [`s{1..${subjects}}`],
            publish_rate: subjects,
            publish_size: BYTES,
            publish_order: 'sequential',
            publishers: 1,
            churn: leaving,
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
