// What several samplers need: kinds of garbage collections, a rounding.

/** @import { GcKinds } from './schema.js' */

export const GC_KINDS = /** @type {const} */ (['minor', 'major', 'incremental', 'weak'])

/** @returns {GcKinds} */
export const noGc = () => ({
  minor: { count: 0, pause: 0 },
  major: { count: 0, pause: 0 },
  incremental: { count: 0, pause: 0 },
  weak: { count: 0, pause: 0 },
})

/** @param {number} share @returns {number} four digits */
export const tenThousandths = share => Math.round(share * 10_000) / 10_000
