// What publishers were told, and what clients have got, side by side.

/**
 * @typedef {import('../test/redis/load.js').Load} Load
 * @typedef {import('../test/redis/traffic.js').Listener | import('../test/redis/traffic.js').SdkListener} Client
 *
 * @typedef {object} Books
 * @property {number} said publications, whatever came of them
 * @property {Record<string, number>} figures
 * @property {string[]} faults in words
 */

const REPEATED = / twice$/
const OUT_OF_ORDER = / after \d+ of /
/** Error 100: the request may be tried again. */
const TEMPORARY = 100

/**
 * @param {Load} load that has stopped
 * @param {Client[]} clients whose subscriptions began before it did
 * @returns {Books}
 */
export function compareBooks(load, clients) {
  const tracks = clients.flatMap(client => [...client.tracks.values()])
  const told = [...load.faults, ...clients.flatMap(({ faults }) => faults)]
  let expected = 0
  let acknowledgedThere = 0
  let delivered = 0
  /** @type {string[]} */
  const missing = []
  /** @type {string[]} */
  const other = []
  for (const { channel, got } of tracks) {
    const acknowledged = load.acknowledged.get(channel) ?? new Map()
    expected += acknowledged.size
    delivered += got.size
    for (const [position, id] of acknowledged) {
      const here = got.get(position)
      if (here === id) acknowledgedThere++
      else if (here === undefined) missing.push(`${channel}: ${position} (${id}) is missing`)
      else other.push(`${channel}: ${position} is ${here}, and was acknowledged as ${id}`)
    }
  }
  const repeated = told.filter(fault => REPEATED.test(fault))
  const outOfOrder = told.filter(fault => OUT_OF_ORDER.test(fault))
  const rest = told.filter(fault => !REPEATED.test(fault) && !OUT_OF_ORDER.test(fault))
  /** @param {(client: any) => number} figure */
  const sum = figure => clients.reduce((total, client) => total + figure(client), 0)
  const refused = load.errors.get(TEMPORARY) ?? 0
  const errors = [...load.errors.values()].reduce((total, count) => total + count, 0)
  const figures = {
    acknowledged: load.acks,
    refused,
    refused_otherwise: errors - refused,
    unanswered: load.unanswered,
    clients: clients.length,
    subscriptions: tracks.length,
    expected,
    delivered: acknowledgedThere,
    // What was stored although its publisher was told otherwise, or nothing.
    delivered_unacknowledged: delivered - acknowledgedThere,
    missing: missing.length,
    repeated: repeated.length,
    out_of_order: outOfOrder.length,
    other_faults: rest.length + other.length,
    told_of_gaps: tracks.reduce((total, { told }) => total + told, 0),
    clients_that_returned: clients.filter(({ returns }) => returns > 0).length,
    returns: sum(({ returns }) => returns),
    // The SDK keeps these to itself.
    disconnects_seen: sum(({ closed = [] }) => closed.length),
    unsubscribes_seen: sum(({ unsubscribed = [] }) => unsubscribed.length),
  }
  const said = load.acks + errors + load.unanswered
  return { said, figures, faults: [...rest, ...other, ...outOfOrder, ...repeated, ...missing] }
}

/**
 * @param {Books} books
 * @returns {boolean} whether everybody has everything once and in order, and nobody was told otherwise
 */
export const soundBooks = ({ figures, faults }) =>
  faults.length === 0 &&
  figures.told_of_gaps === 0 &&
  figures.refused_otherwise === 0 &&
  figures.acknowledged > 0
