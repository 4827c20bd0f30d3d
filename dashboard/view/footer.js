import { width as widthOf } from '../terminal/line.js'

/** @typedef {import('../terminal/line.js').Line} Line */

/**
 * The keys, as many as fit: the others are in the help.
 *
 * @template State
 * @param {(state: State) => [key: string, text: string][]} keysOf the most important ones first; the first one stands at the end
 * @returns {import('./screen.js').Panel<State>}
 */
export const footerOf = keysOf => ({
  name: 'footer',
  visible: () => true,
  rows: () => ({ least: 1, most: 1 }),
  turn: 0,

  draw(state, width) {
    const [quit, ...others] = keysOf(state).map(
      ([key, text]) =>
        /** @type {Line} */ ([
          [key, 'key'],
          [` ${text}`, 'label'],
        ]),
    )
    /** @type {Line} */
    const line = [[' ', '']]
    let room = width - 2 - widthOf(quit)
    for (const item of others) {
      room -= widthOf(item) + 2
      if (room < 0) break
      line.push(...item, ['  ', ''])
    }
    return [[...line, ...quit]]
  },
})
