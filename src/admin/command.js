// Commands of the stats stream that are allowed over HTTP.

import { BadBody, parseJson } from '../api/params.js'

/** @import { StatsCommand } from '../stats/schema.js' */

/** @param {any} value */
const isIndex = value => Number.isInteger(value) && value >= 0

/** @param {string} body @returns {StatsCommand | null} null: not allowed over HTTP @throws {BadBody} */
export function readCommand(body) {
  const { type, worker = null } = parseJson(body) ?? {}
  if (type === 'gc' && (worker === null || isIndex(worker))) return { type, worker }
  if (type === 'restart' && isIndex(worker)) return { type, worker }
  // Only a local user may stop the gateway; the log may hold more than figures.
  if (type === 'stop' || type === 'log') return null
  throw new BadBody()
}
