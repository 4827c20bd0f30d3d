/** @import { FleetSettings, Settings } from '../schema.js' */

// Each drone's share of the connections and of the publishing.

/**
 * Apportions integers by weight and bound (largest remainder).
 * @param {number} total above the sum of the bounds, each gets its bound
 * @param {readonly number[]} weights @param {readonly number[]} [bounds] Infinity: none
 * @returns {number[]} one for each weight
 */
export function apportion(total, weights, bounds = weights.map(() => Number.POSITIVE_INFINITY)) {
  const shares = weights.map(() => 0)
  let left = Math.min(
    total,
    bounds.reduce((sum, bound) => sum + bound, 0),
  )
  // The rest of a bounded share goes to the others.
  while (left > 0) {
    const open = shares.map((_, i) => i).filter(i => shares[i] < bounds[i])
    const whole = open.reduce((sum, i) => sum + weights[i], 0)
    const parts = open.map(i => {
      const exact = whole > 0 ? (left * weights[i]) / whole : left / open.length
      return { i, exact, part: Math.min(Math.floor(exact), bounds[i] - shares[i]) }
    })
    let given = 0
    for (const { i, part } of parts) {
      shares[i] += part
      given += part
    }
    left -= given
    // Fewer units than drones are left: the largest remainders get one each, the first of equal ones.
    for (const { i } of parts.sort((a, b) => b.exact - b.part - (a.exact - a.part) || a.i - b.i)) {
      if (left === 0 || left >= open.length) break
      if (shares[i] === bounds[i]) continue
      shares[i]++
      left--
    }
  }
  return shares
}

/**
 * The numbers of the fleet's connections: each drone has a block, and `n` connections fill all blocks evenly. Blocks
 * are sized for `base` connections, at least n: the maximum since the drones changed or n was 0, so that a drone's
 * numbers do not change while `n` is below.
 * @param {number[]} capacities of the drones, in their order @param {number} n @param {number} base
 * @returns {{first: number, connections: number}[]}
 */
export function connectionBlocks(capacities, n, base) {
  const sizes = apportion(base, capacities, capacities)
  const held = apportion(n, sizes, sizes)
  let first = 0
  return sizes.map((size, i) => {
    const block = { first, connections: held[i] }
    first += size
    return block
  })
}

/** @param {FleetSettings} settings @param {number[]} capacities @param {{base: number, publishFrom: number}} run @returns {Settings[]} */
export function settingsOf(settings, capacities, { base, publishFrom }) {
  const count = capacities.length
  const publishing = settings.publish_rate > 0
  const publishers = publishersOf(settings, count)
  const held = capacities.reduce((sum, capacity) => sum + capacity, 0)
  const total = Math.min(held, Math.max(base, settings.n))
  return connectionBlocks(capacities, settings.n, total).map(({ first, connections }, i) => ({
    targets: settings.host,
    transport: settings.transport,
    connections,
    first,
    total,
    concurrency: settings.concurrency,
    rate: settings.rate / count,
    addresses: settings.addresses,
    ports: settings.ports,
    channels: settings.channels,
    recover: settings.recover,
    user: settings.user,
    churn: settings.churn / count,
    backoff: { min: settings.backoff_min, max: settings.backoff_max },
    publish: publishing ? (publishers[i] ?? null) : null,
    publishFrom: publishing ? publishFrom : 0,
  }))
}

/**
 * Of the first drones. Templates alternate: the numbers of their publishers differ by one at most.
 * @param {FleetSettings} settings @param {number} count of drones @returns {import('../schema.js').Publish[]}
 */
function publishersOf({ publishers, publish_channels: templates, ...settings }, count) {
  const all = Math.min(publishers, count)
  return Array.from({ length: all }, (_, i) => {
    const parts = Math.ceil((all - (i % templates.length)) / templates.length)
    return {
      via: settings.publish_via,
      channels: templates[i % templates.length],
      order: settings.publish_order,
      rate: settings.publish_rate / Math.min(all, templates.length) / parts,
      size: settings.publish_size,
      ...(settings.publish_host?.length > 0 && { targets: settings.publish_host }),
      ...(settings.publish_flat && { flat: true }),
      ...(settings.publish_lanes > 0 && { lanes: settings.publish_lanes }),
      part: Math.floor(i / templates.length),
      parts,
    }
  })
}

/** Settings whose change restarts publishers, with sequences from 1. @type {readonly (keyof FleetSettings)[]} */
const PUBLISHING = [
  'publish_channels',
  'publish_host',
  'publish_via',
  'publish_flat',
  'publish_lanes',
  'publishers',
]

/** @param {FleetSettings} before @param {FleetSettings} after @returns {boolean} whether publishing begins with `after` */
export const beginsPublishing = (before, after) =>
  after.publish_rate > 0 &&
  (before.publish_rate === 0 || PUBLISHING.some(name => String(before[name]) !== String(after[name])))

/** Contradictions within the settings. @param {FleetSettings} settings @returns {string} one line; '': none */
export function contradiction(settings) {
  const templates = settings.publish_channels.length
  if (settings.publish_rate > 0 && templates === 0) return 'publish_rate: publish_channels is missing'
  if (settings.publish_rate > 0 && settings.publishers < templates)
    return `publishers: ${templates} publish_channels need at least as many publishers`
  if (settings.backoff_max < settings.backoff_min)
    return `backoff_max (${settings.backoff_max}) is less than backoff_min (${settings.backoff_min})`
  if (settings.n > 0 && settings.host.length === 0) return 'n: host is missing'
  return ''
}
