/** @import { Counters, Rates } from '../schema.js' */

export const COUNTERS = Object.freeze(
  /** @type {(keyof Counters)[]} */ (
    (
      'opened failed ended closed reconnects refused pings received damaged duplicates disordered gaps lost missed ' +
      'recovered unrecovered published unpublished bytesIn bytesOut'
    ).split(' ')
  ),
)

/** Counters whose rates are shown. @type {readonly (keyof Rates)[]} */
export const RATES = Object.freeze([
  'opened',
  'failed',
  'ended',
  'received',
  'published',
  'bytesIn',
  'bytesOut',
])

/** @returns {Rates} */
export const zeroRates = () => /** @type {any} */ (Object.fromEntries(RATES.map(name => [name, 0])))

/** @param {number} count @param {number} before an earlier count @param {number} span ms in between @returns {number} per second */
export const rate = (count, before, span) => (span > 0 ? Math.max(0, ((count - before) * 1000) / span) : 0)

/** @returns {Counters} */
export const zeroCounters = () => /** @type {any} */ (Object.fromEntries(COUNTERS.map(name => [name, 0])))

/** @param {Counters} to is changed @param {Counters} from @returns {Counters} `to` */
export function addCounters(to, from) {
  for (const name of COUNTERS) to[name] += from[name]
  return to
}

/**
 * @param {Record<string, number>} faults by kind; changed @param {string} kind @param {number} times
 * @param {number} max kinds @param {string} [rest] other kinds
 */
export function addFault(faults, kind, times, max, rest = 'other') {
  const name = Object.hasOwn(faults, kind) || Object.keys(faults).length < max ? kind : rest
  faults[name] = (faults[name] ?? 0) + times
}
