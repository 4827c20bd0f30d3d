/** @typedef {import('../../src/stats/schema.js').StatsMessage} StatsMessage */

/** @param {any} value */
const isObject = value => Boolean(typeof value === 'object' && value !== null)

/** @param {any} snapshot */
const isSnapshot = snapshot =>
  isObject(snapshot) &&
  typeof snapshot.time === 'number' &&
  Array.isArray(snapshot.workers) &&
  Array.isArray(snapshot.events) &&
  ['node', 'primary', 'totals', 'machine', 'capacity'].every(name => isObject(snapshot[name]))

/** @type {Record<string, (message: any) => boolean>} */
const SHAPES = {
  hello: ({ schema, node, history, events }) =>
    typeof schema === 'number' && isObject(node) && Array.isArray(history) && Array.isArray(events),
  snapshot: ({ snapshot }) => isSnapshot(snapshot),
  log: ({ line }) => typeof line === 'string',
  done: ({ command, error }) => typeof command === 'string' && (error === null || typeof error === 'string'),
}

/**
 * @param {string} line
 * @returns {StatsMessage | null} null: of a kind that this dashboard does not know
 * @throws {Error} when it is no message at all
 */
export function readMessage(line) {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    throw new Error('this is no stream of statistics: a line is not JSON')
  }
  if (!isObject(message) || typeof message.type !== 'string')
    throw new Error('this is no stream of statistics: a line is no message')
  const fits = Object.hasOwn(SHAPES, message.type) ? SHAPES[message.type] : null
  if (fits === null) return null
  if (!fits(message)) throw new Error(`this is no stream of statistics: a strange ${message.type}`)
  return message
}
