/** @typedef {import('../schema.js').Counters} Counters */

/** Names of the counters; meanings in schema.js. */
export const COUNTERS = Object.freeze(
  /** @type {(keyof Counters)[]} */ (
    (
      'opened failed ended closed reconnects refused pings received damaged duplicates disordered gaps lost missed ' +
      'recovered unrecovered published unpublished bytesIn bytesOut'
    ).split(' ')
  ),
)

/** @returns {Counters} */
export const zeroCounters = () => /** @type {any} */ (Object.fromEntries(COUNTERS.map(name => [name, 0])))

/** @param {Counters} to is changed @param {Counters} from @returns {Counters} `to` */
export function addCounters(to, from) {
  for (const name of COUNTERS) to[name] += from[name]
  return to
}

/**
 * Counts faults by kind.
 * @param {Record<string, number>} faults is changed
 * @param {string} kind @param {number} times
 * @param {number} most kinds @param {string} [rest] all further ones
 */
export function addFault(faults, kind, times, most, rest = 'other') {
  const name = Object.hasOwn(faults, kind) || Object.keys(faults).length < most ? kind : rest
  faults[name] = (faults[name] ?? 0) + times
}
