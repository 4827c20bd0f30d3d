import { bytes, ms, share } from '../../src/base/format.js'
import { LIMITS } from '../../src/metrics/limits.js'
import { healthMark } from '../health.js'
import { helpOf } from '../view/panels.js'

/** @import { Panel, State } from '../state.js' */
/** @import { Line } from '../terminal/line.js' */

/** Keys of this view only. @type {readonly [key: string, text: string][]} */
const KEYS = [
  ['l', 'log on, off'],
  ['g', 'request a garbage collection'],
  ['r', 'restart a worker, or all in turn'],
]

/** @type {readonly [name: string, limit: keyof typeof LIMITS, format: (value: number) => string][]} */
const HEALTH = [
  ['delay avg', 'tickAvg', value => `${ms(value)} ms`],
  ['delay p90', 'tickP90', value => `${ms(value)} ms`],
  ['delay max', 'tickMax', value => `${ms(value)} ms`],
  ['loop', 'loop', share],
  ['worker cpu', 'cpu', share],
  ['gc a second', 'gc', value => `${ms(value)} ms`],
  ['machine cpu', 'machine', share],
  ['steal', 'steal', share],
  ['memory, files', 'full', share],
  ['outbox', 'outbox', bytes],
]

/** @type {readonly [name: string, text: string][]} */
const WORDS = [
  ['delay', 'event-loop delay: how long events wait'],
  ['loop', 'share of time it is busy'],
  ['gc', 'ms of pauses in a second'],
  ['outbox', 'bytes waiting for slow clients'],
  ['native', 'other memory of the processes'],
  ['kernel', 'sockets of clients, their queues'],
  ['others', 'other programs'],
  ['capacity', 'from measured bytes a client'],
]

/** Keys, words and limits. @type {Panel} */
export const help = helpOf({
  first: state => generated(state.key),
  keys: ({ owner }) => [
    ...KEYS,
    ['q ctrl-c', owner ? 'quit: asks about the gateway' : 'quit; the gateway keeps running'],
  ],
  words: state => [...limits(state.look.colors), [], ...words()],
})

/** The key printed at startup is hidden behind the dashboard. @param {string} key @returns {Line[]} */
function generated(key) {
  if (key === '') return []
  return [[[' API key, and that of the admin page', 'label']], [[` ${key}`, 'accent']], []]
}

/** @param {boolean} colors @returns {Line[]} */
function limits(colors) {
  const [warn, bad] = colors ? ['from', 'from'] : [`${healthMark('warn')} from`, `${healthMark('bad')} from`]
  return [
    [
      ['health'.padEnd(14), 'header'],
      [warn.padEnd(9), 'warn'],
      [bad, 'bad'],
    ],
    ...HEALTH.map(
      ([name, limit, format]) =>
        /** @type {Line} */ ([
          [name.padEnd(14), 'label'],
          [format(LIMITS[limit][0]).padEnd(9), 'value'],
          [format(LIMITS[limit][1]), 'value'],
        ]),
    ),
  ]
}

/** @returns {Line[]} */
const words = () =>
  WORDS.map(([name, text]) => [
    [name.padEnd(9), 'accent'],
    [text, 'label'],
  ])
