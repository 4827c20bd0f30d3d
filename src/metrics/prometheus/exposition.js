import { createRequire } from 'node:module'

/** @import { Distribution, Facts, Family } from './family.js' */

/**
 * @typedef {Record<string, string | number>} Labels
 * @typedef {{metricName: string, labels: Labels, sharedLabels: Labels, value: number}} Sample
 */

const require = createRequire(import.meta.url)

/** Of the text format, version 0.0.4. */
export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** One object for all: the registry caches formatted labels by identity. */
const NONE = Object.freeze({})

/** @param {readonly string[]} names @param {readonly (string | number)[]} values */
function labelled(names, values) {
  /** @type {Labels} */
  const labels = {}
  for (let i = 0; i < names.length; i++) labels[names[i]] = values[i]
  return labels
}

/** @param {string} name @param {Labels} labels @param {Distribution} distribution @returns {Sample[]} */
function bucketsOf(name, labels, { bounds, counts, count, sum }) {
  const sample = (/** @type {string} */ suffix, /** @type {number} */ value, more = NONE) => ({
    metricName: `${name}_${suffix}`,
    labels: { ...labels, ...more },
    sharedLabels: NONE,
    value,
  })
  return [
    ...bounds.map((le, i) => sample('bucket', counts[i], { le })),
    sample('bucket', count, { le: '+Inf' }),
    sample('sum', sum),
    sample('count', count),
  ]
}

/** A family with its values, shaped as a prom-client metric. Values come from snapshots: prom-client counts nothing. */
class SnapshotMetric {
  /** @param {Family} family @param {Sample[]} values */
  constructor({ name, type, help }, values) {
    this.name = name
    this.type = type
    this.help = help
    this.values = values
  }

  /** Called by the registry. */
  async get() {
    return this
  }
}

/** @param {Family} family @param {Facts} facts @returns {Sample[]} */
function samplesOf(family, facts) {
  const { name, labels: names } = family
  if (family.type === 'histogram') {
    return family.read(facts).flatMap(([value, ...labels]) => bucketsOf(name, labelled(names, labels), value))
  }
  const samples = []
  for (const [value, ...labels] of family.read(facts)) {
    if (typeof value !== 'number' || !Number.isFinite(value)) continue
    samples.push({ metricName: name, labels: labelled(names, labels), sharedLabels: NONE, value })
  }
  return samples
}

/**
 * @param {readonly Family[]} families @param {Facts} facts
 * @returns {Promise<string>} Prometheus text format 0.0.4, without families that have no values
 */
export function expose(families, facts) {
  // Loaded with the first scrape: it takes 70 ms of the start of a worker.
  const { Registry } = /** @type {typeof import('prom-client')} */ (require('prom-client'))
  const registry = new Registry()
  for (const family of families) {
    const samples = samplesOf(family, facts)
    if (samples.length > 0) registry.registerMetric(/** @type {any} */ (new SnapshotMetric(family, samples)))
  }
  return registry.metrics()
}
