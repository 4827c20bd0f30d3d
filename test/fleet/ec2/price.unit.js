import { readFile } from 'node:fs/promises'
import t from 'tap'
import { HELP } from '../../../fleet/providers/ec2/options.js'
import { listPrice, PRICES_OF, priceOf } from '../../../fleet/providers/ec2/price.js'

/** @param {string} name @returns {Promise<string>} on one line */
const page = async name =>
  (await readFile(new URL(`../../../docs/${name}`, import.meta.url), 'utf8')).replace(/\s+/g, ' ')

t.test('the date of the prices is shown, also in the documentation', async t => {
  t.equal(PRICES_OF, 'January 2025')
  const options = /** @type {any} */ ({ instanceType: 't3.small', spot: false, price: null, maxPrice: null })
  const price = await priceOf(/** @type {any} */ (null), 'us-east-1', options)
  t.equal(price?.hourly.toFixed(4), '0.0267', 'with its address and its disk')
  t.equal(price?.source, `list price of ${PRICES_OF}, an estimate`)
  t.match(HELP, `list prices of ${PRICES_OF}`)
  t.match(await page('fleet-ec2.md'), `list prices of ${PRICES_OF}`)
  t.match(await page('benchmarking.md'), `list prices of ${PRICES_OF}`)
})

t.test('the documentation has the prices of the table', async t => {
  const beside = 0.0059
  const ec2 = await page('fleet-ec2.md')
  for (const [count, type] of /** @type {const} */ ([
    [40, 't3.small'],
    [20, 'c7g.large'],
  ])) {
    const dollars = count * (Number(listPrice(type, 'us-east-1')) + beside)
    const row = new RegExp(`\\| ${count} x \`${type}\`[^|]*\\| \\$([\\d.]+) \\|`).exec(ec2)
    t.equal(row?.[1], dollars.toFixed(2), type)
  }
  const benchmarking = await page('benchmarking.md')
  t.match(benchmarking, `40 × $${listPrice('t3.micro', 'us-east-1')?.toFixed(4)} an hour`)
  t.match(
    benchmarking,
    `\`c7i.4xlarge\` (16 vCPU, 32 GB, about $${listPrice('c7i.4xlarge', 'us-east-1')?.toFixed(2)} an hour)`,
  )
})

t.test('an instance type that is not in the table has no price', async t => {
  for (const type of ['x9z.large', 'c7g', 'c7g.huge', 'constructor.large', 'c7g.constructor'])
    t.equal(listPrice(type, 'us-east-1'), null, type)
  t.equal(listPrice('c7g.large', 'constructor'), listPrice('c7g.large', 'nowhere'))
})
