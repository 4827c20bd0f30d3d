import { until } from '../../../kit/wait.js'
import { Random } from './random.js'

const AT_ONCE = 8
/** Generated input publishes nothing to this channel. */
export const QUIET = 'quiet:x'

/** @param {number} seed @returns {number} or that of the environment variable HALLEY_FUZZ_SEED */
const seedOf = seed => Number(process.env.HALLEY_FUZZ_SEED ?? seed)

/**
 * Sends generated input to a gateway. No worker dies, nothing is logged as an error, and other clients lose nothing.
 * @param {any} t
 * @param {object} run
 * @param {import('../../../kit/gateway.js').TestGateway} run.gateway
 * @param {import('../../../kit/protocol-client.js').ProtocolClient[]} run.watchers clients that subscribe to QUIET
 * @param {number} run.seed
 * @param {number} run.count maximum number of inputs
 * @param {number} [run.most] ms after which no further input is sent
 * @param {() => (random: Random) => Promise<{fault: string, input: Buffer} | null>} run.begin called for each of the
 *   clients that run at once; its result sends one input, and returns the fault of the response
 * @returns {Promise<number>} inputs sent
 */
export async function fuzz(t, { gateway, watchers, seed: standard, count, most = Infinity, begin }) {
  const first = seedOf(standard)
  t.comment(`seed ${first}`)
  for (const watcher of watchers) await watcher.subscribe(QUIET)
  const end = Date.now() + most
  let published = 0
  let sent = 0
  let isBroken = false
  const work = async (/** @type {number} */ seed) => {
    const random = new Random(seed)
    const step = begin()
    for (let n = 0; sent < count && Date.now() < end && !isBroken; n++) {
      sent++
      const wrong = await step(random)
      if (wrong) {
        isBroken = true
        const { fault, input } = wrong
        t.fail(fault, { seed, number: n, input: input.toString('latin1') })
      }
      if (seed === first) await gateway.api('publish', { channel: QUIET, data: ++published })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => work(first + i)))
  t.ok(published > 0, `${published} publications beside ${sent} inputs`)
  for (const watcher of watchers) {
    for (let n = 1; n <= published; n++) {
      const { pub } = await watcher.push('pub')
      if (String(pub.data) !== `${n}`) return t.fail(`${pub.data} instead of ${n} was delivered`)
    }
  }
  await until(() => gateway.api('info'))
  t.same(
    gateway.lines.filter(({ msg, level }) => level >= 50 || msg === 'worker died'),
    [],
    'no error is logged',
  )
  return sent
}
