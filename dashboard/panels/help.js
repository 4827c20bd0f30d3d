import { LIMITS } from '../../src/stats/limits.js'
import { mark, ms, percent, size } from '../format.js'
import { beside, width as widthOf } from '../terminal/line.js'
import { rule, scrolled } from './parts.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('../state.js').State} State
 */

/** @type {readonly [key: string, text: string][]} */
const KEYS = [
  ['h ?', 'this help'],
  ['↑ ↓ k j', 'select a worker'],
  ['enter', 'its detail; esc goes back'],
  ['pgup pgdn', 'scroll'],
  ['s S', 'sort by the next column, turn round'],
  ['c tab', 'the next chart'],
  ['p', 'pause, go on'],
  ['l', 'log, on or off'],
  ['e', 'all events'],
  ['g', 'ask for a garbage collection'],
  ['r', 'restart the selected worker'],
  ['ctrl-l', 'paint the screen anew'],
]

/** @type {readonly [name: string, limit: keyof typeof LIMITS, format: (value: number) => string][]} */
const HEALTH = [
  ['delay avg', 'tickAvg', value => `${ms(value)} ms`],
  ['delay p90', 'tickP90', value => `${ms(value)} ms`],
  ['delay max', 'tickMax', value => `${ms(value)} ms`],
  ['loop', 'loop', percent],
  ['worker cpu', 'cpu', percent],
  ['gc a second', 'gc', value => `${ms(value)} ms`],
  ['machine cpu', 'machine', percent],
  ['steal', 'steal', percent],
  ['memory, files', 'full', percent],
  ['outbox', 'outbox', size],
]

/** @type {readonly [name: string, text: string][]} */
const WORDS = [
  ['delay', 'event-loop delay: how long events wait'],
  ['loop', 'share of time it is busy'],
  ['gc', 'ms of pauses in a second'],
  ['outbox', 'bytes not taken by clients'],
  ['native', 'memory of processes beyond V8'],
  ['kernel', 'sockets of clients, what is queued'],
  ['others', 'other programs of the machine'],
  ['room', 'by measured bytes a client'],
]

/**
 * Keys, words and limits.
 * @type {import('./panel.js').Panel}
 */
export const help = {
  name: 'help',
  visible: state => state.view === 'help',
  rows: () => ({ least: 3, most: Number.POSITIVE_INFINITY }),
  turn: 3,

  draw(state, width, rows) {
    const left = [...generated(state.key), ...keys(state.owner)]
    const right = [...limits(state.look.colors), [], ...words()]
    const half = Math.max(...left.map(widthOf)) + 2
    const lines =
      width >= half + 36 ? beside([left, right], [half, width - half - 2], 2) : [...left, [], ...right]
    return [
      rule('help', width, [
        ['esc', 'key'],
        [' back', 'label'],
      ]),
      ...scrolled(lines, rows - 1, state.scroll),
    ]
  },
}

/**
 * What was printed at the start stands behind the dashboard.
 * @param {string} key
 * @returns {Line[]}
 */
function generated(key) {
  if (key === '') return []
  return [[[' API key, and that of the admin page', 'label']], [[` ${key}`, 'accent']], []]
}

/**
 * @param {boolean} owner
 * @returns {Line[]}
 */
function keys(owner) {
  const quit = owner ? 'quit: asks about the gateway' : 'quit; the gateway goes on'
  return [...KEYS, ['q ctrl-c', quit]].map(([key, text]) => [
    [` ${key.padEnd(10)}`, 'key'],
    [text, 'value'],
  ])
}

/**
 * @param {boolean} colors
 * @returns {Line[]}
 */
function limits(colors) {
  const [warn, bad] = colors ? ['from', 'from'] : [`${mark('warn')} from`, `${mark('bad')} from`]
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
    [name.padEnd(8), 'accent'],
    [text, 'label'],
  ])
