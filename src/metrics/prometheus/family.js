// The contract of a metric family: name, type, help, labels, and how to read its values from a snapshot.

/** @import { Snapshot } from '../schema.js' */

/**
 * @typedef {object} Facts the input of one scrape
 * @property {Snapshot} snapshot
 * @property {number | null} users of this node; null: not counted
 * @property {number | null} channels of this node with subscribers; null: not counted
 * @property {number | null} nodes of the cluster, including this one; null: unknown
 *
 * @typedef {object} Distribution
 * @property {readonly number[]} bounds upper bounds, ascending
 * @property {readonly number[]} counts cumulative, one per bound
 * @property {number} count
 * @property {number} sum
 *
 * @typedef {[value: number | null | undefined, ...labels: (string | number)[]]} Row null and undefined are omitted
 * @typedef {[value: Distribution, ...labels: (string | number)[]]} DistributionRow
 *
 * @typedef {object} FamilyHead
 * @property {string} name
 * @property {string} help
 * @property {readonly string[]} labels names, in the order of a row's values
 *
 * @typedef {FamilyHead & {type: 'counter' | 'gauge', read: (facts: Facts) => Row[]}} PlainFamily
 * @typedef {FamilyHead & {type: 'histogram', read: (facts: Facts) => DistributionRow[]}} HistogramFamily
 * @typedef {PlainFamily | HistogramFamily} Family
 */

/**
 * @param {string} name @param {string} help @param {readonly string[]} labels @param {PlainFamily['read']} read
 * @returns {PlainFamily}
 */
export const gauge = (name, help, labels, read) => ({ name, type: 'gauge', help, labels, read })

/**
 * @param {string} name @param {string} help @param {readonly string[]} labels
 * @param {PlainFamily['read']} read values that decrease only on a restart
 * @returns {PlainFamily}
 */
export const counter = (name, help, labels, read) => ({ name, type: 'counter', help, labels, read })

/** @typedef {(facts: Facts) => number | null | undefined} Value of a family with one value and no labels */

/** @param {string} name @param {string} help @param {Value} read @returns {PlainFamily} */
export const plainGauge = (name, help, read) => gauge(name, help, [], facts => [[read(facts)]])

/** @param {string} name @param {string} help @param {Value} read @returns {PlainFamily} */
export const plainCounter = (name, help, read) => counter(name, help, [], facts => [[read(facts)]])

/**
 * One row per name; `labels` precede the name.
 * @param {Record<string, number>} values @param {...string} labels @returns {Row[]}
 */
export const byName = (values, ...labels) =>
  Object.entries(values).map(([name, value]) => [value, ...labels, name])

/** @param {number} ms */
export const seconds = ms => ms / 1000
