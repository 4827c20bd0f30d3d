const WORDS = [
  ...'the quick brown fox jumps over the lazy dog'.split(' '),
  ...'съешь ещё этих мягких французских булок да выпей чаю'.split(' '),
  ...'élève èlève êlève 敏捷 斏捷 的棕色狐狸 😀 😁 👩‍👩‍👧 \u2028 "quoted" back\\slash \ud83d'.split(' '),
]

/** An edited document: most versions are similar to the previous one, some are new. */
export class TestDocument {
  #random
  /** @type {string[]} */
  #words = []

  /** @param {ReturnType<typeof import('./chance.js').chance>} random */
  constructor(random) {
    this.#random = random
    this.#write(50)
  }

  /** @param {number} count */
  #write(count) {
    this.#words = Array.from({ length: count }, () => this.#random.pick(WORDS))
  }

  /** @param {number} n number of the version @returns {unknown} payload */
  edited(n) {
    const random = this.#random
    const words = this.#words
    if (random.hit(0.01)) this.#write(random.pick([0, 1, 30, 300, 6000]))
    if (random.hit(0.1)) {
      const cut = words.splice(random.below(words.length), random.below(30))
      words.splice(random.below(words.length), 0, ...cut)
    }
    for (let edits = random.below(4); edits > 0; edits--) {
      words.splice(random.below(words.length), random.below(3), random.pick(WORDS), random.pick(WORDS))
    }
    if (random.hit(0.05)) return n
    return random.hit(0.5) ? { n, text: words.join(' ') } : { text: words.join(' '), n }
  }
}
