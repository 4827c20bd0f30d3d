// A strict reader of Prometheus' text format 0.0.4, independent of libraries.

import assert from 'node:assert/strict'

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*/
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]Inf|NaN)$/
const TYPES = new Set(['counter', 'gauge', 'histogram', 'summary', 'untyped'])
const SUFFIXES = /_(?:bucket|sum|count)$/

/**
 * @typedef {{name: string, labels: Record<string, string>, value: number}} Sample
 * @typedef {{name: string, type: string, help: string, samples: Sample[]}} Family
 */

/** @param {string} text */
function numberOf(text) {
  assert.match(text, NUMBER)
  return text.endsWith('Inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text)
}

/** @param {string} text @param {boolean} quoted */
function plain(text, quoted) {
  const escapes = quoted ? /\\[\\n"]/g : /\\[\\n]/g
  assert.ok(!text.replace(escapes, '').includes('\\'), `only known escapes: ${text}`)
  return text.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped))
}

/** @param {string} line @returns {Sample} */
function readSample(line) {
  const name = NAME.exec(line)?.[0]
  assert.ok(name, line)
  let rest = line.slice(name.length)
  /** @type {Record<string, string>} */
  const labels = {}
  if (rest.startsWith('{')) {
    rest = rest.slice(1)
    while (!rest.startsWith('}')) {
      const label = LABEL_NAME.exec(rest)?.[0]
      assert.ok(label, line)
      assert.ok(!label.startsWith('__'), `${label} is reserved`)
      assert.ok(!Object.hasOwn(labels, label), `${label} twice: ${line}`)
      const value = /^="((?:[^"\\\n]|\\.)*)"/.exec(rest.slice(label.length))
      assert.ok(value, line)
      labels[label] = plain(value[1], true)
      rest = rest.slice(label.length + value[0].length)
      if (rest.startsWith(',')) rest = rest.slice(1)
      else assert.ok(rest.startsWith('}'), line)
    }
    rest = rest.slice(1)
  }
  assert.ok(rest.startsWith(' '), line)
  return { name, labels, value: numberOf(rest.slice(1)) }
}

/** @param {Record<string, string>} labels */
const key = labels => JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))

/** @param {Family} family a histogram */
function checkHistogram({ name, samples }) {
  /** @type {Map<string, {buckets: [number, number][], sum?: number, count?: number}>} */
  const series = new Map()
  for (const sample of samples) {
    const { le, ...labels } = sample.labels
    const id = key(labels)
    let one = series.get(id)
    if (!one) series.set(id, (one = { buckets: [] }))
    if (sample.name === `${name}_bucket`) one.buckets.push([numberOf(le), sample.value])
    else if (sample.name === `${name}_sum`) one.sum = sample.value
    else if (sample.name === `${name}_count`) one.count = sample.value
    else assert.fail(sample.name)
  }
  for (const { buckets, sum, count } of series.values()) {
    assert.ok(sum !== undefined && count !== undefined, `${name} has sum and count`)
    assert.deepEqual(buckets.at(-1), [Infinity, count], `${name} ends with +Inf`)
    for (let i = 1; i < buckets.length; i++) {
      assert.ok(buckets[i][0] > buckets[i - 1][0], `${name}: bounds ascend`)
      assert.ok(buckets[i][1] >= buckets[i - 1][1], `${name}: buckets are cumulative`)
    }
  }
}

/** @param {string} text @returns {Map<string, Family>} by name; throws where the text is not the format */
export function parse(text) {
  assert.ok(text.endsWith('\n'), 'the last line ends')
  /** @type {Map<string, Family>} */
  const families = new Map()
  const seen = new Set()
  /** @type {Family | null} */
  let family = null
  let help = null
  for (const line of text.slice(0, -1).split('\n')) {
    if (line === '') continue
    const comment = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line)
    if (comment) {
      const [, kind, name, rest] = comment
      assert.match(name, new RegExp(`${NAME.source}$`))
      if (kind === 'HELP') {
        assert.ok(!families.has(name), `${name} comes once`)
        help = { name, text: plain(rest, false) }
        continue
      }
      assert.equal(help?.name, name, 'help and type go together')
      assert.ok(TYPES.has(rest), line)
      families.set(name, (family = { name, type: rest, help: help?.text ?? '', samples: [] }))
      continue
    }
    assert.ok(!line.startsWith('#'), line)
    const sample = readSample(line)
    assert.ok(family, line)
    const own = family.type === 'histogram' ? sample.name.replace(SUFFIXES, '') : sample.name
    assert.equal(own, family.name, 'the samples of a family stand together')
    const id = sample.name + key(sample.labels)
    assert.ok(!seen.has(id), `${line} comes twice`)
    seen.add(id)
    if (family.type === 'counter') assert.ok(sample.value >= 0, line)
    family.samples.push(sample)
  }
  for (const one of families.values()) {
    assert.ok(one.samples.length > 0, `${one.name} has samples`)
    if (one.type === 'histogram') checkHistogram(one)
  }
  return families
}

/**
 * @param {Map<string, Family>} families @param {string} name of a sample
 * @param {Record<string, string>} [labels] those that matter
 * @returns {number} sum of the samples that have these labels; NaN: there are none
 */
export function value(families, name, labels = {}) {
  const family = families.get(name) ?? families.get(name.replace(SUFFIXES, ''))
  const found = (family?.samples ?? []).filter(
    sample =>
      sample.name === name &&
      Object.entries(labels).every(([label, wanted]) => sample.labels[label] === wanted),
  )
  return found.length === 0 ? Number.NaN : found.reduce((sum, sample) => sum + sample.value, 0)
}
