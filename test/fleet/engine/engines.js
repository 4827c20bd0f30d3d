// Engines for tests, with default settings.

import { setTimeout as sleep } from 'node:timers/promises'
import { Engine } from '../../../fleet/drone/engine/engine.js'
import { addCounters, zeroCounters } from '../../../fleet/statistics/counters.js'
import { Distribution } from '../../../fleet/statistics/distribution.js'
import { until } from '../../kit/wait.js'

/** @returns {import('../../../fleet/schema.js').Settings} */
export const settingsOf = (url, settings = {}) => ({
  targets: [url],
  transport: 'websocket',
  connections: 0,
  first: 0,
  total: settings.connections ?? 0,
  concurrency: 100,
  rate: 0,
  addresses: [],
  ports: '',
  channels: [],
  recover: false,
  user: '',
  churn: 0,
  backoff: { min: 50, max: 500 },
  publish: null,
  publishFrom: 0,
  ...settings,
})

export const publishOf = (channels, publish = {}) => ({
  via: 'api',
  channels,
  order: 'random',
  rate: 200,
  size: 128,
  part: 0,
  parts: 1,
  ...publish,
})

/** An engine, and the sum of its samples. */
export class TestEngine {
  gauges = { wanted: 0, opening: 0, open: 0 }
  counters = zeroCounters()
  faults = {}
  latency = new Distribution()
  probe = new Distribution()
  connect = new Distribution()
  answer = new Distribution()

  constructor(t, options = {}) {
    this.engine = new Engine({
      allow: ['127.0.0.1', 'localhost'],
      apiKey: 'key',
      tokenSecret: 'secret',
      machine: 1,
      ...options,
    })
    t.teardown(() => this.engine.stop())
  }

  sample() {
    const sample = this.engine.sample()
    this.gauges = sample.gauges
    this.counters = sample.counters
    this.clock = sample.clock
    for (const name of ['latency', 'probe', 'connect', 'answer']) this[name].merge(sample[name])
    for (const [kind, times] of Object.entries(sample.faults))
      this.faults[kind] = (this.faults[kind] ?? 0) + times
    return this
  }

  /** @returns {Promise<this>} when it is true of the samples so far */
  async until(what) {
    await until(() => what(this.sample()), what.toString())
    return this
  }

  /**
   * Waits until enough has been received, and nothing more comes for a while; or until nothing has come for so long
   * that nothing will.
   * @param {(counters: import('../../../fleet/schema.js').Counters) => boolean} enough
   */
  async quiet(enough) {
    for (let turns = 0, before = -1; ; turns++) {
      const { counters } = this.sample()
      if (counters.received !== before) turns = 0
      if (turns >= (enough(counters) ? 1 : 100)) return this
      before = counters.received
      await sleep(250)
    }
  }
}

export const sum = engines =>
  engines.reduce((all, { counters }) => addCounters(all, counters), zeroCounters())
