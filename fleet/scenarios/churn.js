import { count } from '../../src/base/format.js'
import { ownScenario } from './own.js'
import { connectionsText, scaled } from './sizing.js'

const REOPENED_PER_SECOND = 200_000 / 60

export const churn = ownScenario({
  name: 'churn',
  summary: 'connections are constantly closed and reopened, and the others must not miss a message',
  load: '100,000 WebSocket connections, 200,000 a minute of them closed and reopened; each on one of 1,000 channels, one message/s of 256 bytes to each',
  scaled: 'connections, channels, and reopened connections; each client gets one message/s at every scale',
  clients: 100_000,
  measure({ n, rate, scale }) {
    const channels = scaled(1000, scale)
    const churn = REOPENED_PER_SECOND * scale
    const publish = { publish_channels: [`s{1..${channels}}`], publish_rate: channels, publish_size: 256 }
    return {
      text: `${connectionsText(n)}, ${count(churn * 60)} a minute closed and reopened, one message/s to each`,
      steps: [
        {
          name: connectionsText(n),
          settings: {
            n,
            rate,
            channels: [`s{1..${channels}}`],
            churn,
            ...publish,
            publish_order: 'sequential',
          },
          ramp: Math.ceil(n / rate),
          settle: 5,
          seconds: 60,
        },
      ],
    }
  },
})
