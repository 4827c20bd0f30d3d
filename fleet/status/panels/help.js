import { helpOf } from '../../../dashboard/view/panels.js'

/** Keys of this view only. @type {readonly [key: string, text: string][]} */
const KEYS = [
  ['t', 'histogram: all, or the last 5 s'],
  ['f', 'all faults'],
  ['n', 'set the number of connections'],
  ['+ -', 'more, fewer connections'],
  ['r', 'restart the selected drone'],
  ['q ctrl-c', 'quit; the load continues'],
]

/** Explained in docs/fleet.md. @type {readonly [name: string, text: string][]} */
const WORDS = [
  ['lost', 'missing, though no connection broke'],
  ['missed', 'sent while a connection was down'],
  ['duplicates', 'received before'],
  ['disordered', 'received after a later one'],
  ['damaged', 'invalid payload'],
  ['unrecovered', 'recoveries that failed'],
  ['refused', 'subscriptions'],
  ['unpublished', 'not confirmed by the target'],
  ['failed', 'attempts to connect'],
  ['ended', 'closed by the target or the network'],
  ['each', 'memory of one connection'],
  ['clock', 'offset to the gateway, and its error'],
  ['publishing', 'until the target has confirmed'],
  ['own machine', 'both ends on one machine: one clock'],
  ['95 %', 'confidence interval of the mean'],
]

/** Keys and words. @type {import('../state.js').Panel} */
export const help = helpOf({
  keys: () => KEYS,
  words: () =>
    WORDS.map(([name, text]) => [
      [name.padEnd(12), 'accent'],
      [text, 'label'],
    ]),
})
