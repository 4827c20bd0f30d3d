// Families of hooks and event proxies. Those of proxies have Centrifugo's names, too.

import { DURATION_BOUNDS, noHookCounts, partsOf } from '../hook-stats.js'
import { counter, gauge, seconds } from './family.js'

/** @import { HookCounts } from '../schema.js' */
/** @import { Distribution, Facts, Family, HistogramFamily } from './family.js' */

const PROXY = Object.freeze(['protocol', 'type', 'name'])
const HOOK = Object.freeze(['protocol', 'event', 'name'])
/** Centrifugo's begin at 5 ms. */
const FIRST = DURATION_BOUNDS.indexOf(5)
/** Failures that Centrifugo does not count: the backend has answered, or was not called. */
const UNCOUNTED = new Set(['base64', 'data', 'client_limit', 'worker_limit'])

/**
 * @param {Facts} facts @param {boolean} proxies only
 * @returns {[HookCounts, ...string[]][]} of every hook of the configuration, with its labels
 */
function countsOf({ snapshot }, proxies) {
  const names = new Set([...Object.keys(snapshot.totals.hooks), ...Object.keys(snapshot.counters.hooks)])
  return [...names]
    .filter(name => !proxies || partsOf(name)[0] !== 'module')
    .map(name => [snapshot.counters.hooks[name] ?? noHookCounts(), ...partsOf(name)])
}

/**
 * @param {string} name @param {string} help @param {readonly string[]} labels @param {number} from
 * @returns {HistogramFamily}
 */
const durations = (name, help, labels, from) => ({
  name,
  type: 'histogram',
  help,
  labels,
  read: facts =>
    countsOf(facts, labels === PROXY).map(([{ calls, time, within }, ...values]) => {
      /** @type {Distribution} */
      const distribution = {
        bounds: DURATION_BOUNDS.slice(from).map(seconds),
        counts: within.slice(from),
        count: calls,
        sum: seconds(time),
      }
      return [distribution, ...values]
    }),
})

/** @param {HookCounts} counts */
const failed = ({ failures }) =>
  Object.entries(failures).reduce((sum, [kind, count]) => (UNCOUNTED.has(kind) ? sum : sum + count), 0)

/** @type {readonly Family[]} */
export const centrifugoProxies = Object.freeze([
  durations(
    'centrifugo_proxy_duration_seconds_histogram',
    'Durations of calls of event proxies, by protocol, event and name of the proxy.',
    PROXY,
    FIRST,
  ),
  counter('centrifugo_proxy_errors', 'Failed calls of event proxies.', PROXY, facts =>
    countsOf(facts, true).map(([counts, ...labels]) => [failed(counts), ...labels]),
  ),
  gauge('centrifugo_proxy_inflight_requests', 'Calls of event proxies under way.', PROXY, ({ snapshot }) =>
    Object.entries(snapshot.totals.hooks)
      .filter(([name]) => partsOf(name)[0] !== 'module')
      .map(([name, { inflight }]) => [inflight, ...partsOf(name)]),
  ),
])

/** @type {readonly Family[]} */
export const hooks = Object.freeze([
  durations(
    'halley_hook_duration_seconds',
    'Durations of calls of hooks and event proxies, by protocol (module, http, grpc), event and name.',
    HOOK,
    0,
  ),
  counter(
    'halley_hook_failures_total',
    'Failed calls of hooks and event proxies, by reason (docs/proxies.md).',
    [...HOOK, 'reason'],
    facts =>
      countsOf(facts, false).flatMap(([{ failures }, ...labels]) =>
        Object.entries(failures).map(
          ([kind, count]) => /** @type {[number, ...string[]]} */ ([count, ...labels, kind]),
        ),
      ),
  ),
  gauge('halley_hook_inflight', 'Calls of hooks and event proxies under way.', HOOK, ({ snapshot }) =>
    Object.entries(snapshot.totals.hooks).map(([name, { inflight }]) => [inflight, ...partsOf(name)]),
  ),
  gauge(
    'halley_hook_down',
    'Workers for which the backend of the proxy is down: its calls fail at once.',
    HOOK,
    ({ snapshot }) =>
      Object.entries(snapshot.totals.hooks).map(([name, { down }]) => [down, ...partsOf(name)]),
  ),
])
