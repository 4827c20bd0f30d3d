import { helpOf } from '../../../dashboard/view/panels.js'

/** Those that only this view has. @type {readonly [key: string, text: string][]} */
const KEYS = [
  ['t', 'histogram: all, or the last 5 s'],
  ['f', 'all faults'],
  ['n', 'another number of connections'],
  ['+ -', 'some more, some fewer connections'],
  ['r', 'restart the selected drone'],
  ['q ctrl-c', 'quit; the load continues'],
]

/** What docs/fleet.md says at length. @type {readonly [name: string, text: string][]} */
const WORDS = [
  ['lost', 'missing, though nothing had broken'],
  ['missed', 'came while a connection was away'],
  ['duplicates', 'had come before'],
  ['disordered', 'came after a later one'],
  ['damaged', 'the payload was not whole'],
  ['unrecovered', 'recoveries that failed'],
  ['refused', 'subscriptions'],
  ['unpublished', 'not confirmed by the target'],
  ['failed', 'attempts to connect'],
  ['ended', 'by the target or the network'],
  ['each', 'memory of one connection'],
  ['clock', 'behind the gateway, and its error'],
  ['publishing', 'until the target has confirmed'],
  ['own machine', 'both ends on one: no clocks to compare'],
  ['95 %', 'the mean of all is there, so sure'],
]

/**
 * Keys and words.
 * @type {import('../state.js').Panel}
 */
export const help = helpOf({
  keys: () => KEYS,
  words: () =>
    WORDS.map(([name, text]) => [
      [name.padEnd(12), 'accent'],
      [text, 'label'],
    ]),
})
