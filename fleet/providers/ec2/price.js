// Estimated prices of instances before a launch. AWS bills may differ.

export const PRICES_OF = 'January 2025'

/** On-demand, Linux, us-east-1: dollars per hour of `large`. Other sizes of a family are in proportion. */
// biome-ignore format: a table
const LARGE = Object.freeze({
  t3: 0.0832, t3a: 0.0752, t4g: 0.0672,
  c5: 0.085, c5a: 0.077, c5n: 0.108, c6a: 0.0765, c6i: 0.085, c6in: 0.1134, c6g: 0.068, c6gn: 0.0864,
  c7a: 0.10264, c7i: 0.08925, 'c7i-flex': 0.08479, c7g: 0.0725, c7gn: 0.1248, c8g: 0.07976,
  m5: 0.096, m5a: 0.086, m6a: 0.0864, m6i: 0.096, m6g: 0.077, m7a: 0.11592, m7i: 0.1008, 'm7i-flex': 0.09576, m7g: 0.0816, m8g: 0.08976,
  r5: 0.126, r6a: 0.1134, r6i: 0.126, r6g: 0.1008, r7a: 0.15215, r7i: 0.1323, r7g: 0.1071, r8g: 0.11782,
})

const SIZES = Object.freeze({ nano: 1 / 16, micro: 1 / 8, small: 1 / 4, medium: 1 / 2, large: 1, xlarge: 2 })

/** Relative to us-east-1. @type {Readonly<Record<string, number>>} */
// biome-ignore format: a table
const REGIONS = Object.freeze({
  'us-east-1': 1, 'us-east-2': 1, 'us-west-2': 1, 'us-west-1': 1.2, 'ca-central-1': 1.1, 'mx-central-1': 1.05,
  'eu-west-1': 1.1, 'eu-central-1': 1.15, 'eu-west-2': 1.16, 'eu-west-3': 1.16, 'eu-north-1': 1.05, 'eu-south-1': 1.16, 'eu-south-2': 1.1,
  'ap-south-1': 1.05, 'ap-south-2': 1.05, 'ap-northeast-1': 1.28, 'ap-northeast-2': 1.2, 'ap-northeast-3': 1.28, 'ap-southeast-1': 1.22,
  'ap-southeast-2': 1.28, 'ap-southeast-3': 1.22, 'ap-east-1': 1.38, 'sa-east-1': 1.58, 'me-south-1': 1.22, 'af-south-1': 1.3,
})
const ELSEWHERE = 1.3

/** A public IPv4 address, and a disk of 8 GB: dollars per hour. */
const ADDRESS = 0.005
const DISK = 0.0009

/** @param {Record<string, number>} table @param {string} name */
const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined)

/** @param {string} type `c7g.2xlarge` @param {string} region @returns {number | null} dollars an hour; null: unknown */
export function listPrice(type, region) {
  const [family, size = ''] = type.split('.')
  const large = own(LARGE, family)
  const times = /^(\d+)xlarge$/.exec(size)
  const factor = times ? Number(times[1]) * 2 : own(SIZES, size)
  if (large === undefined || factor === undefined) return null
  return large * factor * (own(REGIONS, region) ?? ELSEWHERE)
}

/**
 * Current spot price in the most expensive of the region's zones, dollars per hour; null: unknown.
 * @param {import('./client.js').Ec2} ec2 @param {string} region @param {string} type
 */
async function spotPrice(ec2, region, type) {
  // The period `now` yields the last price of each zone.
  const now = new Date()
  const prices = await ec2.all(region, 'DescribeSpotPriceHistory', 'SpotPriceHistory', {
    InstanceTypes: [type],
    ProductDescriptions: ['Linux/UNIX'],
    StartTime: now,
    EndTime: now,
  })
  const found = prices.map(({ SpotPrice }) => Number(SpotPrice)).filter(price => price >= 0)
  return found.length > 0 ? Math.max(...found) : null
}

/**
 * @typedef {{hourly: number, source: string}} PriceOf of one machine: dollars, with its address and its disk
 * @param {import('./client.js').Ec2} ec2 @param {string} region @param {import('./options.js').Options} options
 */
export async function priceOf(ec2, region, { instanceType, spot, price, maxPrice }) {
  const beside = ADDRESS + DISK
  if (price !== null) return { hourly: price + beside, source: '--price' }
  if (spot) {
    const now = await spotPrice(ec2, region, instanceType)
    if (now !== null) return { hourly: now + beside, source: 'current spot price' }
    if (maxPrice !== null) return { hourly: maxPrice + beside, source: '--max-price' }
  }
  const list = listPrice(instanceType, region)
  return list === null ? null : { hourly: list + beside, source: `list price of ${PRICES_OF}, an estimate` }
}
