// Runs of the benchmarks, for their tests.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { unless } from '../kit/needs.js'

export const run = promisify(execFile)
export const script = fileURLToPath(new URL('../../bench/index.js', import.meta.url))
export const skip = unless(process.platform === 'linux', 'the benchmarks read /proc')

/**
 * @param {string} args of a run with 50 clients, one second, and one worker if they do not say more
 * @returns {Promise<any[]>} its lines
 */
export async function bench(args) {
  const { stdout } = await run(process.execPath, [
    script,
    '--workers=1',
    ...args.split(' '),
    '--json',
    '--conns=50',
    '--seconds=1',
  ])
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
}

export const NO_FAULT = {
  connections: 50,
  failed: 0,
  closed: 0,
  missing: 0,
  order_faults: 0,
  damaged: 0,
  publish_errors: 0,
}

/**
 * @param {any} t
 * @param {[args: string, subscribers: number][]} flows runs, and the subscribers of each channel in them
 */
export function countsAll(t, flows) {
  for (const [args, subscribers] of flows) {
    t.test(
      `${args}: everything that is published is counted at each subscriber`,
      { skip },
      async (/** @type {any} */ t) => {
        const [result] = await bench(args)
        t.match(result, NO_FAULT)
        t.ok(result.published > 0)
        t.equal(result.delivered, result.published * subscribers)
        t.ok(result.delivered_per_s > 0 && result.delivered_per_s <= result.delivered)
        t.ok(result.p50_ms > 0 && result.p50_ms <= result.p99_ms && result.p99_ms <= result.max_ms)
        t.ok(result.cpu_us_per_message > 0)
        t.equal(result.redis_cpu_us_per_publish > 0, args.includes('redis'))
      },
    )
  }
}
