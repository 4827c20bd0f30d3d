import { count } from '../../src/base/format.js'
import { connectionsText, dronesFor, gatewayFor, openingRate, scaled } from './sizing.js'

const CONNECTIONS = 100_000
const STEPS = 10
const SUBJECTS = 1000
const EACH = 1
const BYTES = 256
const OPENED_PER_SECOND = 5000

/** @type {import('./contract.js').Scenario} */
export const ladder = {
  name: 'ladder',
  summary: 'the same load in ten steps, as one table: where does it begin to hurt?',
  source: '',
  machine: '',
  load: '10,000 to 100,000 WebSocket connections in ten steps, each on one of 1,000 channels; one message/s of 256 bytes to each',
  scaled: 'connections and channels; each client gets one message/s at every scale',
  plan(options) {
    const most = scaled(CONNECTIONS, options.scale, STEPS)
    const subjects = scaled(SUBJECTS, options.scale)
    const rate = openingRate(OPENED_PER_SECOND, options)
    const sizes = Array.from({ length: STEPS }, (_, index) => Math.round(((index + 1) * most) / STEPS))
    return {
      drones: dronesFor(most, options),
      gateway: gatewayFor(most, options),
      size: {
        connections: most,
        text: `${count(sizes[0])} to ${connectionsText(most)} in ${STEPS} steps, ${count(subjects)} channels, one message/s to each client`,
      },
      steps: sizes.map((n, index) => ({
        name: `${Math.round(((index + 1) * 100) / STEPS)}\u202f%`,
        settings: {
          transport: 'websocket',
          n,
          rate,
          channels: [`s{1..${subjects}}`],
          publish_channels: [`s{1..${subjects}}`],
          publish_rate: subjects * EACH,
          publish_size: BYTES,
          publish_order: 'sequential',
          publishers: 1,
        },
        ramp: Math.ceil((n - (sizes[index - 1] ?? 0)) / rate),
        settle: 5,
        seconds: 20,
      })),
      differs: [],
    }
  },
  published: [],
}
