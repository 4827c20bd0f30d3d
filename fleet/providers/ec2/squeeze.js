// The drone's program, made as small as it gets: user data has 16,384 bytes for all. Minified JavaScript repeats itself in ways that
// gzip and brotli see but half of. Here many models of what comes next, each looking at something else that came before, are weighed by
// how well they did lately, and what they agree on costs next to nothing (context mixing; Matt Mahoney, "Data Compression Explained",
// 4.3). That takes a fifth less than gzip, with the text that unpacks it, for a second of a machine's first minute.

/**
 * Packs or unpacks: one function, so that the two cannot differ. It only adds, multiplies and divides, which every machine does alike.
 * Its own text goes to the drones' machines (see `unsqueezer`): no strings, comments on lines of their own, all names declared.
 *
 * @param {number[]} text when it is unpacked, all but its beginning is still to come, and its length is given
 * @param {number} from bytes that both sides know already, and learn from
 * @param {number[] | null} packed null: it is to be packed
 * @returns {number[]} what is packed, or the text
 */
function code(text, from, packed) {
  const models = 12
  const mul = Math.imul
  // Logistic function and its inverse, from -12 to 12, in steps that suffice for 12 bits.
  /** @type {number[]} */
  const squash = []
  /** @type {number[]} */
  const stretch = []
  let slope = 162754.79
  for (let step = 0, filled = 0; step < 4097; slope *= 0.994157987) {
    squash[step++] = 1 / (1 + slope)
    while (filled <= squash[step - 1] * 4096) stretch[filled++] = step / 170.65 - 12
  }
  /** @param {number} sum */
  const chance = sum => squash[Math.max(1, Math.min(4095, ((sum + 12) * 170.65) | 0))]
  // For each model and context: how likely a 1 is, and how often that was seen.
  const likely = new Float32Array(models << 20).fill(0.5)
  const seen = new Uint8Array(models << 20)
  // Weights of the models: by the bits of this byte that are known, and by the byte before it.
  const weights = new Float32Array(8192).fill(0.25)
  /** @type {number[]} */
  const says = []
  /** @type {number[]} */
  const cells = []
  // The longest repetition: where it goes on, how long it is, how much one of that length is to be trusted.
  /** @type {Record<string, number>} */
  const places = {}
  const trust = Array(32).fill(0.75)
  let place = 0
  let length = 0
  // The interval of the arithmetic coder.
  let low = 0
  let high = -1 >>> 0
  let taken = 0
  let point = 0
  /** @type {number[]} */
  const output = []
  if (packed) while (taken < 4) point = point * 256 + packed[taken++]
  // The word that is under way, the one before it, and the signs between words.
  let word = 0
  let before = 0
  let signs = 0
  for (let at = 0; at < text.length; at++) {
    /** @param {number} distance */
    const back = distance => text[at - distance] | 0
    const contexts = [
      0,
      word,
      mul(word, 4099) ^ before,
      word ^ mul(signs & 65535, 77),
      back(2) | (back(3) << 8) | (back(4) << 16),
      signs & 65535,
      signs & 16777215,
    ]
    let hash = 0
    for (let order = 1; order < 6; order++) {
      hash = mul(hash ^ back(order), 16777619) + order
      contexts.push(hash)
    }
    const other = 4096 + back(1) * 16
    let known = 1
    for (let shift = 7; shift >= 0; shift--) {
      const own = known * 16
      const goes =
        length > 0 && (text[place] | 256) >> (shift + 1) === known ? ((text[place] >> shift) & 1) * 2 - 1 : 0
      let first = 0
      let second = 0
      for (let model = 0; model <= models; model++) {
        if (model < models) {
          const mixed = mul(contexts[model] ^ mul(model + 1, 2654435761) ^ mul(known, 1540483477), 2246822507)
          const cell = (model << 20) | ((mixed ^ (mixed >>> 15)) & 1048575)
          cells[model] = cell
          says[model] = seen[cell] && stretch[(likely[cell] * 4096) | 0]
        } else says[model] = goes * stretch[(trust[length] * 4096) | 0]
        first += weights[own + model] * says[model]
        second += weights[other + model] * says[model]
      }
      const share = Math.max(0.0003, Math.min(0.9997, chance((first + second) / 2)))
      const middle = low + Math.floor((high - low) * share)
      const bit = packed && at >= from ? +(point <= middle) : (text[at] >> shift) & 1
      if (at >= from) {
        if (bit) high = middle
        else low = middle + 1
      }
      while ((low ^ high) >>> 24 === 0) {
        if (packed) point = ((point << 8) | packed[taken++]) >>> 0
        else output.push(high >>> 24)
        low = (low << 8) >>> 0
        high = ((high << 8) | 255) >>> 0
      }
      // Who was right gets more weight, sooner at the beginning.
      const pace = 0.01 + 0.06 / (1 + at / 500)
      first = (bit - chance(first)) * pace
      second = (bit - chance(second)) * pace
      for (let model = 0; model <= models; model++) {
        weights[own + model] += first * says[model]
        weights[other + model] += second * says[model]
      }
      for (const cell of cells) {
        likely[cell] += (bit - likely[cell]) / (seen[cell] + 1.25)
        if (seen[cell] < 24) seen[cell]++
      }
      if (goes) {
        const right = +(goes > 0) === bit
        trust[length] += (+right - trust[length]) / 20
        if (!right) length = 0
      }
      known = known * 2 + bit
    }
    const byte = known & 255
    text[at] = byte
    // Letters, digits, $, _ and #.
    if (
      byte === 35 ||
      byte === 36 ||
      (byte > 47 && byte < 58) ||
      (byte > 64 && byte < 91) ||
      (byte > 94 && byte < 123)
    )
      word = mul(word + byte + 1, 790318151)
    else {
      before = word || before
      word = 0
      signs = (signs << 8) | byte
    }
    if (length > 0 && text[place] === byte) {
      place++
      if (length < 31) length++
    } else length = 0
    const latest = text.slice(Math.max(0, at - 4), at + 1).join()
    if (length === 0) {
      place = places[latest] | 0
      if (place > 0) while (length < 31 && text[place - 1 - length] === text[at - length]) length++
    }
    places[latest] = at + 1
  }
  output.push(high >>> 24, (high >>> 16) & 255, 0, 0)
  return packed ? text : output
}

/**
 * A program as user data has it.
 *
 * @typedef {object} Squeezed
 * @property {Buffer} packed
 * @property {number} size bytes of the program
 */

/**
 * The text of the unpacker is there before, and what this has learnt from it about programs need not be sent.
 *
 * @param {string} text
 * @returns {Squeezed}
 */
export function squeeze(text) {
  const [known, bytes] = [Buffer.from(unpacker()), Buffer.from(text)]
  return { packed: Buffer.from(code([...known, ...bytes], known.length, null)), size: bytes.length }
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'

/** @returns {string} source of a function `(text: number[], from: number, packed: number[]) => number[]` */
export function unsqueezer() {
  const source = code.toString().replace(/^\s*\/[/*].*\n/gm, '')
  const declared = source.matchAll(/(?:const|let) (\w+)|, (\w+) = |(\w+) =>|\((\w+), (\w+), (\w+)\)/g)
  const names = [...new Set([...declared].flatMap(([, ...found]) => found.filter(Boolean)))]
  const short = new Map(names.map((name, i) => [name, LETTERS[i] ?? `_${i}`]))
  return source
    .replace(/(?<![.\w])[a-z]\w*/g, name => short.get(name) ?? name)
    .replace(/^\s+/gm, '')
    .replace(/ ?([-+*/%=<>&|^?:;,(){}[\]]+) ?/g, '$1')
}

/** @returns {string} a program: `node FILE PACKED TEXT`, where PACKED has the size and the base64 of what `squeeze` made */
export const unpacker = () =>
  `const fs=require('fs'),[,own,from,to]=process.argv,[n,p]=fs.readFileSync(from,'latin1').split(' '),t=[...fs.readFileSync(own)],k=t.length
t.length+=+n
fs.writeFileSync(to,Buffer.from((${unsqueezer()})(t,k,[...Buffer.from(p,'base64')])).subarray(k))
`
