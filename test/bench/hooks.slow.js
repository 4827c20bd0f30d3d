// `npm run bench -- hooks` with a short ping interval.

import t from 'tap'
import { parseOptions, Run } from '../../bench/hooks.js'
import { skip } from './runs.js'

t.setTimeout(120_000)

t.test('hooks: clients outlive the pings of a long run', { skip }, async t => {
  const lines = []
  const io = {
    env: process.env,
    print: (/** @type {string} */ text) => lines.push(JSON.parse(text)),
    progress() {},
    warning: (/** @type {string} */ text) => t.fail(text),
  }
  class FastPings extends Run {
    spawn(options) {
      const client = { ping_interval: '500ms', pong_timeout: '300ms' }
      return super.spawn({ ...options, config: { ...options.config, client } })
    }
  }
  // Small batches, so that the publications take longer than a ping and its timeout.
  const flags = ['--clients=1', '--batch=4', '--publications=5000', '--runs=1', '--json']
  const running = new FastPings(parseOptions(flags), io)
  t.teardown(() => running.stop())
  await running.run()
  t.same(
    lines.map(({ variant }) => variant),
    ['none', 'passes', 'reads', 'changes'],
  )
  for (const { publications_per_s } of lines) t.ok(publications_per_s > 0)
})
