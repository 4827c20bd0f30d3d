import { count } from '../../src/base/format.js'
import { ownScenario } from './own.js'
import { connectionsText, scaled } from './sizing.js'

const STEPS = 10

export const ladder = ownScenario({
  name: 'ladder',
  summary: 'the same load in ten steps, in one table, to find the capacity',
  load: '10,000 to 100,000 WebSocket connections in ten steps, each on one of 1,000 channels; one message/s of 256 bytes to each',
  scaled: 'connections and channels; each client gets one message/s at every scale',
  clients: 100_000,
  measure({ n, rate, scale }) {
    const max = Math.max(STEPS, n)
    const channels = scaled(1000, scale)
    const publish = { publish_channels: [`s{1..${channels}}`], publish_rate: channels, publish_size: 256 }
    const sizes = Array.from({ length: STEPS }, (_, index) => Math.round(((index + 1) * max) / STEPS))
    return {
      text: `${count(sizes[0])} to ${connectionsText(max)} in ${STEPS} steps, ${count(channels)} channels, one message/s to each client`,
      steps: sizes.map((n, index) => ({
        name: `${Math.round(((index + 1) * 100) / STEPS)}\u202f%`,
        settings: { n, rate, channels: [`s{1..${channels}}`], ...publish, publish_order: 'sequential' },
        ramp: Math.ceil((n - (sizes[index - 1] ?? 0)) / rate),
        settle: 5,
        seconds: 20,
      })),
    }
  },
})
