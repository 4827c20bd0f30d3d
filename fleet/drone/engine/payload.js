// Payloads: see Payload in schema.js. Their padding says how long they are and tells their places, so that a receiver who was told
// nothing sees whether one is whole:
//
//   {"t":1795267980383811,"s":17,"c":3735928559,"e":597123456,"m":1,"o":-250,"p":"512.defgh...yza"}
//                                             whole length, then `.`, or `!` when it was published again ^
//                                             each other byte of the padding is the letter of its place in the payload
//
// Published again: a publisher that got no confirmation cannot know whether the message went out. A receiver that has it already is
// not to blame the gateway for the second one.

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz'
const PAYLOAD = /"data":\{"t":(\d+),"s":(\d+),"c":(\d+),"e":(\d+),"m":(\d+),"o":(-?\d+),"p":"(\d+)[.!]/
/** Places in the padding that are looked at. */
const LOOKS = 6

/**
 * @param {import('../../schema.js').Payload} numbers
 * @param {number} size bytes; a payload whose numbers need more is as long as it has to be
 * @param {boolean} again whether it may have been published before
 * @returns {string}
 */
export function makePayload({ t, s, c, e, m, o }, size, again) {
  const head = `{"t":${t},"s":${s},"c":${c},"e":${e},"m":${m},"o":${o},"p":"`
  const length = Math.max(size, head.length + 6)
  const start = `${head}${length}${again ? '!' : '.'}`
  const letters = ALPHABET.repeat(Math.ceil(length / 26))
  return `${start}${letters.slice(start.length, Math.max(start.length, length - 2))}"}`
}

/**
 * Finds the payload in a publication.
 * @param {string} text JSON of the publication, a character for each byte
 * @returns {(import('../../schema.js').Payload & {again: boolean, offset: number}) | null} `offset` in the channel's stream, 0 if it has
 *   none. null: there is no whole payload
 */
export function readPayload(text) {
  const match = PAYLOAD.exec(text)
  if (match === null) return null
  const at = match.index + 7
  const mark = match.index + match[0].length - 1
  const end = at + +match[7]
  if (end <= mark + 2 || end > text.length || !text.startsWith('"}', end - 2)) return null
  const step = Math.max(1, (end - mark - 3) >> 2)
  for (let i = end - 3, looks = LOOKS; i > mark && looks > 0; i -= step, looks--)
    if (text.charCodeAt(i) !== 97 + ((i - at) % 26)) return null
  const offset = text.indexOf('"offset":', end)
  return {
    t: +match[1],
    s: +match[2],
    c: +match[3],
    e: +match[4],
    m: +match[5],
    o: +match[6],
    again: text[mark] === '!',
    offset: offset < 0 ? 0 : Number.parseInt(text.slice(offset + 9), 10),
  }
}
