// A result of a run, for tests of reports and limits.

import { latencyOf, noAccounting, RESULT_SCHEMA } from '../../fleet/runner/result.js'
import { Distribution } from '../../fleet/statistics/distribution.js'

/** @param {number[]} values ms */
export function latency(values) {
  const all = new Distribution()
  for (const value of values) all.record(value)
  return latencyOf(all.toWire())
}

/**
 * @param {object} [more]
 * @returns {import('../../fleet/runner/result.js').StepResult}
 */
export const step = more => ({
  name: '100 connections',
  began: 1_700_000_000_000,
  ended: 1_700_000_010_000,
  seconds: 10,
  partial: false,
  recover: false,
  publishRate: 100,
  connections: { wanted: 100, open: 100, min: 100 },
  ramp: { seconds: 1, opened: 100, peak: 100, mean: 100 },
  received: 100,
  published: 100,
  reopened: 0,
  pings: 4,
  bytesIn: 1000,
  bytesOut: 100,
  latency: latency([1, 2, 3, 4, 200]),
  probe: latency([1, 2, 3, 4, 200]),
  connect: latency([5]),
  answer: latency([2]),
  accounting: { ...noAccounting(), expected: 1000, received: 1000, published: 1000, opened: 100, pings: 40 },
  clock: { error: 0, against: 'same machine' },
  drones: [
    {
      id: 'd1',
      where: 'local',
      connections: 100,
      processes: 3,
      cpu: 12,
      memory: 5e7,
      bytesPerConnection: 3000,
      p99: 200,
      clockError: 0.5,
    },
  ],
  gateway: null,
  server: null,
  figures: {},
  disturbances: [],
  ...more,
})

/**
 * @param {object} [more]
 * @returns {import('../../fleet/runner/result.js').RunResult}
 */
export function result(more = {}) {
  const only = step()
  return {
    type: 'halley-fleet-run',
    schema: RESULT_SCHEMA,
    scenario: 'fan-100',
    run: 'abcd',
    started: 1_700_000_000_000,
    ended: 1_700_000_020_000,
    partial: false,
    scale: 0.01,
    load: 'a load',
    target: 'http://10.0.0.5:8000',
    ownGateway: false,
    provider: 'local',
    versions: { halley: '0.1.0', node: 'v20.0.0', drones: ['v20.0.0'] },
    machine: {
      system: 'Linux',
      cpu: 'A CPU',
      cores: 2,
      memory: 2 ** 33,
      files: 20_000,
      kernel: { 'net.core.somaxconn': '4096' },
    },
    overrides: {},
    plan: null,
    published: { source: 'Somebody', machine: 'A machine', load: 'The load', scaled: '' },
    comparison: [{ label: 'Latency', value: '2.35 ms', note: 'a note', ours: '42 ms' }],
    differs: ['It is another machine.'],
    notes: [],
    steps: [only],
    accounting: only.accounting,
    gateway: null,
    limits: [],
    events: [],
    ...more,
  }
}
