import { healthSpan } from '../../../dashboard/health.js'
import { lineWidth } from '../../../dashboard/terminal/line.js'
import { shown } from '../../../dashboard/view/state.js'
import { quantity } from '../../../src/base/format.js'

/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../state.js').State} State
 * @typedef {import('../../schema.js').Counters} Counters
 */

/** Counters that must stay 0 (bad), or should (warn). @type {readonly [keyof Counters, 'warn' | 'bad'][]} */
export const ACCOUNTS = [
  ['lost', 'bad'],
  ['duplicates', 'bad'],
  ['disordered', 'bad'],
  ['damaged', 'bad'],
  ['unrecovered', 'bad'],
  ['missed', 'warn'],
  ['refused', 'bad'],
  ['unpublished', 'bad'],
  ['failed', 'warn'],
  ['ended', 'warn'],
]

const NAME = ' checked '

/**
 * Whether every message came exactly once. All counters are always shown: on several lines if needed.
 * @type {import('../state.js').Panel}
 */
export const accounting = {
  name: 'accounting',
  visible: state => shown(state).snapshot !== null,
  rows: state => {
    const lines = linesOf(state, state.size.columns).length
    return { least: lines, most: lines }
  },
  priority: 3,
  draw: (state, width) => linesOf(state, width),
}

/** @param {State} state @param {number} width @returns {Line[]} */
function linesOf(state, width) {
  const { snapshot } = shown(state)
  if (snapshot === null) return []
  const { counters } = snapshot
  const items = [
    /** @type {Line} */ ([[quantity(counters.received), 'value']]),
    ...ACCOUNTS.map(([name, health]) => accountItem(name, counters[name], health, state.look)),
  ]
  /** @type {Line[]} */
  const lines = [[[NAME, 'header']]]
  for (const item of items) {
    let line = lines[lines.length - 1]
    if (line.length > 1 && lineWidth(line) + 2 + lineWidth(item) > width) {
      line = [[' '.repeat(NAME.length), '']]
      lines.push(line)
    }
    if (line.length > 1) line.push(['  ', ''])
    line.push(...item)
  }
  return lines
}

/**
 * @param {string} name @param {number} value @param {'warn' | 'bad'} health @param {State['look']} look
 * @returns {Line} green when it is 0
 */
function accountItem(name, value, health, { colors }) {
  const [text, style] = healthSpan(quantity(value), value > 0 ? health : 'good', colors)
  return [
    [`${name} `, value > 0 ? style : 'label'],
    [text.trimEnd(), value > 0 ? style : 'good'],
  ]
}
