// Patterns of namespaces: routes of channels, such as `/users/:name` (docs/access.md).
//
//   segment    static     text                 fits the same text
//              variable   :name, user_:name    fits its static part and at least one more character

import { show } from './values.js'

/** @import { Report } from './error.js' */
/** @import { Config } from './options.js' */

const NAMESPACES = 'channel.namespaces'
const MAX_PATTERNS = 1024
const MAX_SEGMENTS = 16
const MAX_BYTES = 255

const SEGMENT = /^([!-~]*?)(?::([A-Za-z_][A-Za-z0-9_]*))?$/

/** @typedef {{text: string, variable: string}} Segment `text`: static part; `variable`: its name, '' = none */

/** @param {string} pattern @returns {Segment[]} @throws {Error} what is wrong, without the pattern */
export function parseChannelPattern(pattern) {
  if (!pattern.startsWith('/')) throw new Error('does not start with /')
  if (Buffer.byteLength(pattern) > MAX_BYTES) throw new Error(`is longer than ${MAX_BYTES} bytes`)
  const texts = pattern.slice(1).split('/')
  if (texts.length > MAX_SEGMENTS) throw new Error(`has more than ${MAX_SEGMENTS} segments`)
  const segments = texts.map(text => {
    if (text === '') throw new Error('has an empty segment')
    if (text.includes('*')) throw new Error('has a wildcard; use variables such as :name')
    const [, before, variable = ''] = SEGMENT.exec(text) ?? []
    if (before === undefined) throw new Error(`has ${show(text)}: characters are ASCII without spaces`)
    if (before.includes(':'))
      throw new Error(
        `has ${show(text)}: a variable is the end of a segment: a letter or _, then also digits`,
      )
    return { text: before, variable }
  })
  const names = segments.map(({ variable }) => variable).filter(name => name !== '')
  if (new Set(names).size < names.length) throw new Error('has two variables of the same name')
  return segments
}

/** @param {Segment} a @param {Segment} b @returns {boolean} whether a text fits both */
function overlap(a, b) {
  if (a.variable !== '' && b.variable !== '') return a.text.startsWith(b.text) || b.text.startsWith(a.text)
  if (a.variable === '' && b.variable === '') return a.text === b.text
  const [fixed, open] = a.variable === '' ? [a, b] : [b, a]
  return fixed.text.length > open.text.length && fixed.text.startsWith(open.text)
}

/** @param {Segment} a @param {Segment} b overlapping @returns {number} above 0: `a` is more static */
const order = (a, b) =>
  a.variable === '' || b.variable === ''
    ? Number(b.variable !== '') - Number(a.variable !== '')
    : a.text.length - b.text.length

/** @param {Segment[]} a @param {Segment[]} b @returns {boolean} whether a channel fits both and neither precedes */
function conflict(a, b) {
  if (a.length !== b.length || !a.every((segment, i) => overlap(segment, b[i]))) return false
  const orders = a.map((segment, i) => order(segment, b[i]))
  return orders.every(each => each <= 0) === orders.every(each => each >= 0)
}

/** Variables of one place, and what follows. @template T */
class Node {
  /** @type {Map<string, Node<T>>} */
  static = new Map()
  /** Longest static part first. @type {{text: string, node: Node<T>}[]} */
  variable = []
  /** Of the pattern that ends here. @type {T | undefined} */
  value

  /** @param {Segment} segment @returns {Node<T>} */
  child({ text, variable }) {
    const known = variable === '' ? this.static.get(text) : this.variable.find(one => one.text === text)?.node
    if (known !== undefined) return known
    /** @type {Node<T>} */
    const node = new Node()
    if (variable === '') this.static.set(text, node)
    else {
      this.variable.push({ text, node })
      this.variable.sort((a, b) => b.text.length - a.text.length)
    }
    return node
  }

  /**
   * The first match is the most static one: patterns do not conflict.
   * @param {string[]} parts @param {number} at
   * @returns {T | undefined}
   */
  find(parts, at) {
    if (at === parts.length) return this.value
    const part = parts[at]
    const found = this.static.get(part)?.find(parts, at + 1)
    if (found !== undefined) return found
    for (const { text, node } of this.variable) {
      if (part.length <= text.length || !part.startsWith(text)) continue
      const found = node.find(parts, at + 1)
      if (found !== undefined) return found
    }
    return undefined
  }
}

/** @param {string} channel @param {number} from its slash @returns {string[]} at most one more than a pattern has */
const partsOf = (channel, from) => channel.slice(from + 1).split('/', MAX_SEGMENTS + 1)

/** Finds the pattern of a channel; visits a place of the patterns at most once. @template T */
export class PatternRoutes {
  /** @type {Node<T>} */
  #root = new Node()

  /** @param {Segment[]} segments @param {T} value */
  add(segments, value) {
    let node = this.#root
    for (const segment of segments) node = node.child(segment)
    node.value = value
  }

  /** @param {string} channel @param {number} from index of its first slash @returns {T | undefined} */
  find(channel, from) {
    return this.#root.find(partsOf(channel, from), 0)
  }
}

/**
 * @param {Segment[]} segments of the pattern that fits the channel
 * @param {string} channel @param {number} from its first slash
 */
export function variablesOf(segments, channel, from) {
  const parts = partsOf(channel, from)
  /** @type {[string, string][]} */
  const found = []
  for (const [i, { text, variable }] of segments.entries())
    if (variable !== '') found.push([variable, parts[i].slice(text.length)])
  return Object.fromEntries(found)
}

/** @param {Config} config @param {Report} report */
export function checkChannelPatterns({ channel }, report) {
  const key = (/** @type {number} */ i) => `${NAMESPACES}[${i}].pattern`
  if (channel.without_namespace.pattern !== '')
    report.refuse(['channel.without_namespace.pattern'], 'is for channel.namespaces')
  /** @type {{i: number, pattern: string, segments: Segment[]}[]} */
  const known = []
  for (const [i, { pattern }] of channel.namespaces.entries()) {
    if (pattern === '') continue
    if (!channel.patterns) {
      report.warn(key(i), 'has no effect without channel.patterns')
      continue
    }
    try {
      const segments = parseChannelPattern(pattern)
      const other = known.find(one => conflict(one.segments, segments))
      if (other !== undefined)
        report.refuse(
          [key(i), key(other.i)],
          `${show(pattern)} and ${show(other.pattern)} fit the same channels, and none of them is more specific`,
        )
      known.push({ i, pattern, segments })
    } catch (error) {
      report.refuse([key(i)], `${show(pattern)} ${error.message}`)
    }
  }
  if (known.length > MAX_PATTERNS)
    report.refuse([NAMESPACES], `has ${known.length} patterns; at most ${MAX_PATTERNS} are possible`)
}
