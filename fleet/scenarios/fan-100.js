import { count } from '../../src/base/format.js'
import * as ours from './figures.js'
import { commonDifferences, connectionsText, dronesFor, gatewayFor, openingRate, scaled } from './sizing.js'

const SUBJECTS = 100
const PUBLISHED = 1000
const BYTES = 512
const OPENED_PER_SECOND = 5000
/** As published; and shorter on this machine. */
const SECONDS = 600
const LOCAL_SECONDS = 60
const EACH = 24_000
const MEANS = ['2.35', '3.09', '5.76', '39.95', '83.2', '139.5', '225.9', '597.3']
const STEPS = MEANS.length

/** @param {number} step from 1 */
const nameOf = step => `${count(step * EACH)} published`

/** @type {import('./contract.js').Scenario} */
export const fan100 = {
  name: 'fan-100',
  summary: '100 channels, each client on one of them, in eight steps up to 192,000 clients',
  source: 'MigratoryData',
  machine: 'Dell R610, 12 cores, 64 GB; clients on other machines',
  load: '24,000 to 192,000 clients in eight steps, each on one of 100 subjects; one publisher, 1,000 messages/s of 512 bytes: 10 messages/s to each client',
  scaled: 'connections; subjects, published messages and the 10 messages/s of each client stay the same',
  plan(options) {
    const sizes = MEANS.map((_, index) => scaled((index + 1) * EACH, options.scale))
    const max = sizes[STEPS - 1]
    const rate = openingRate(OPENED_PER_SECOND, options)
    const seconds = options.seconds ?? (options.local ? LOCAL_SECONDS : SECONDS)
    return {
      drones: dronesFor(max, options),
      gateway: gatewayFor(max, options),
      size: {
        connections: max,
        text: `${count(sizes[0])} to ${connectionsText(max)} in ${STEPS} steps, ${SUBJECTS} channels, ${count(PUBLISHED)} messages/s published: up to ${count((max * PUBLISHED) / SUBJECTS)} messages/s received`,
      },
      steps: sizes.map((n, index) => ({
        name: nameOf(index + 1),
        settings: {
          n,
          rate,
          channels: [`s{random 1..${SUBJECTS}}`],
          publish_channels: [`s{1..${SUBJECTS}}`],
          publish_rate: PUBLISHED,
          publish_size: BYTES,
          publish_order: 'random',
        },
        ramp: Math.ceil((n - (sizes[index - 1] ?? 0)) / rate),
        settle: 5,
        seconds,
      })),
      differs: [
        ...commonDifferences(options),
        'Latency covers all messages to all clients; the published run used 30 probe clients.',
        ...(seconds === SECONDS ? [] : [`Each step was measured for ${seconds} s instead of ${SECONDS} s.`]),
        'Messages are published over the server API, in batches.',
      ],
    }
  },
  published: [
    ...MEANS.map((mean, index) => ({
      label: `Mean latency, ${count((index + 1) * EACH)} clients`,
      value: `${mean} ms`,
      note: index === 0 ? 'this run: the same step, with its share of the clients' : '',
      ours: ours.of(nameOf(index + 1)).mean,
    })),
    { label: 'Maximum latency of a step', value: '49 to 1,732 ms', ours: ours.maxRange },
    { label: 'Messages received', value: '1,920,000/s', note: 'last step', ours: ours.received },
    { label: 'CPU of the machine', value: '25 to 96 %', note: 'first to last step', ours: ours.cpuRange },
  ],
}
