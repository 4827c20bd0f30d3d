// Pauses between two looks at a condition. A look may be dear (a program, a request to a gateway), and it takes its
// time from what is waited for: what does not come at once is looked for less often.

const FIRST = 10
const LONGEST = 150
const GROWTH = 1.5

/** @returns {Generator<number, never>} ms of each pause */
export function* pauses() {
  for (let ms = FIRST; ; ms = Math.min(GROWTH * ms, LONGEST)) yield ms
}
