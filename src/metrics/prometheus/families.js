// Metric families: those of ../table.js, and computed ones. Names, types, labels and meanings of `centrifugo_` are
// Centrifugo's, for its dashboards and alerts. Unknown labels are empty, which Prometheus treats as absent.

import { disconnects } from '../../base/errors.js'
import { noHookCounts } from '../hook-stats.js'
import { BATCH_BOUNDS, DURATION_BOUNDS, SECTIONS, stepsOf, TICK_BOUNDS, valuesAt } from '../table.js'

/** @import { HookCounts, Snapshot } from '../schema.js' */
/** @import * as table from '../table.js' */

/**
 * @typedef {object} Facts of a scrape
 * @property {Snapshot} snapshot
 * @property {number | null} users of this node; null: not counted
 * @property {number | null} channels of this node; null: not counted
 * @property {number | null} nodes of the cluster; null: unknown
 *
 * @typedef {object} Distribution
 * @property {readonly number[]} bounds ascending
 * @property {readonly number[]} counts cumulative
 * @property {number} count
 * @property {number} sum
 *
 * @typedef {[value: number | Distribution | null | undefined, ...labels: (string | number)[]]} Row null: omitted
 *
 * @typedef {object} Family
 * @property {string} name
 * @property {'counter' | 'gauge' | 'histogram'} type
 * @property {string} help
 * @property {readonly string[]} labels in the order of a row
 * @property {table.Section['group'] | 'centrifugo'} group section of docs/metrics.md
 * @property {(facts: Facts) => Row[]} read
 */

/** Labels of array items. @type {Record<string, string>} */
const ITEMS = { workers: 'worker', list: 'consumer_name', republishers: 'republisher_name' }
const HOOK = Object.freeze(['protocol', 'event', 'name'])

/** @param {string[]} steps */
const labelsOf = steps =>
  steps.flatMap((step, i) => {
    if (step === '[]') return [ITEMS[steps[i - 1]]]
    if (step === '<hook>') return HOOK
    return step.startsWith('<') ? step.slice(1, -1).split(' ') : []
  })

/** @param {number} ms */
const seconds = ms => ms / 1000

/**
 * @param {string} name @param {string} path @param {table.Row} row @param {string[]} at
 * @param {table.Section['group']} group
 * @returns {Family}
 */
function familyOf(name, path, row, at, group) {
  const places = at.map(place => ({
    steps: stepsOf(`${place}.${path}`),
    labels: /\bprimary\b/.test(place) ? ['primary'] : [],
  }))
  const given = labelsOf(places[places.length - 1].steps)
  const defaults = row.labels && Object.entries(row.labels)
  const number = (/** @type {any} */ value) => {
    if (row.value) return row.value(value)
    if (value === null) return null
    return row.unit === 'ms' ? seconds(value) : Number(value)
  }
  return {
    name,
    type: row.type === 'counter' ? 'counter' : 'gauge',
    help: row.help,
    labels: defaults?.map(([label]) => label) ?? given,
    group: name.startsWith('centrifugo_') ? 'centrifugo' : group,
    read: ({ snapshot }) =>
      places
        .flatMap(({ steps, labels }) => valuesAt(snapshot, steps, labels))
        .map(([value, ...labels]) => [
          number(value),
          ...(defaults?.map(([label, usual]) => labels[given.indexOf(label)] ?? usual) ?? labels),
        ]),
  }
}

/** @type {Family[]} */
const ofTable = SECTIONS.flatMap(({ at, since, total, group, rows }) =>
  Object.entries(rows).flatMap(([path, row]) => [
    ...(row.prometheus ? [familyOf(row.prometheus, path, row, row.at ?? since ?? at, group)] : []),
    ...(row.total ? [familyOf(row.total, path, row, [String(total)], 'node')] : []),
  ]),
)

/** @param {string} name */
function groupOf(name) {
  if (name.startsWith('centrifugo_')) return 'centrifugo'
  if (name.startsWith('halley_machine_')) return 'machine'
  return name.startsWith('halley_event_loop_') ? 'processes' : 'node'
}

/**
 * @param {Family['type']} type
 * @returns {(name: string, help: string, labels: readonly string[], read: Family['read']) => Family}
 */
const familyOfType = type => (name, help, labels, read) => ({
  name,
  type,
  help,
  labels,
  group: groupOf(name),
  read,
})
const gauge = familyOfType('gauge')
const counter = familyOfType('counter')
const histogram = familyOfType('histogram')

/** @param {Record<string, number>} counts @param {...string} labels @returns {Row[]} */
const byLabel = (counts, ...labels) => Object.entries(counts).map(([name, count]) => [count, ...labels, name])

/** @param {Record<string, number>} counts */
const sum = counts => Object.values(counts).reduce((total, count) => total + count, 0)

const OWN_CODES = new Set(Object.values(disconnects).map(({ code }) => String(code)))
/** Includes codes of the server API's `disconnect`. */
const isOwnCode = (/** @type {string} */ code) => OWN_CODES.has(code) || /^4\d{3}$/.test(code)

const PROXY = Object.freeze(['protocol', 'type', 'name'])
/** Centrifugo's bounds begin at 5 ms. */
const FIRST = DURATION_BOUNDS.indexOf(5)
/** Not counted by Centrifugo: the backend responded, or was not called. */
const UNCOUNTED = new Set(['base64', 'data', 'client_limit', 'worker_limit'])
const isProxy = (/** @type {string} */ hook) => !hook.startsWith('module ')

/** @param {Facts} facts @returns {[name: string, counts: HookCounts][]} */
function hooksOf({ snapshot: { totals, counters } }) {
  const names = new Set([...Object.keys(totals.hooks), ...Object.keys(counters.hooks)])
  return [...names].map(name => [name, counters.hooks[name] ?? noHookCounts()])
}

/** @param {HookCounts} counts @param {number} [from] first bound @returns {Distribution} */
const durations = ({ calls, time, within }, from = 0) => ({
  bounds: DURATION_BOUNDS.slice(from).map(seconds),
  counts: within.slice(from),
  count: calls,
  sum: seconds(time),
})

/** @type {Family[]} */
const computed = [
  gauge(
    'centrifugo_node_build',
    'Always 1; the label is the version of Halley.',
    ['version'],
    ({ snapshot }) => [[1, snapshot.node.version]],
  ),
  gauge(
    'centrifugo_node_num_users',
    'Distinct users of this node; anonymous clients count as one. Absent above 50,000 clients or 50,000 channels.',
    [],
    ({ users }) => [[users]],
  ),
  gauge(
    'centrifugo_node_num_channels',
    'Channels with subscribers on this node. With Redis, absent above 50,000 clients or 50,000 channels.',
    [],
    // With Redis, a snapshot counts a channel once per worker.
    ({ snapshot, channels }) => [[snapshot.node.engine === 'memory' ? snapshot.totals.channels : channels]],
  ),
  gauge('centrifugo_node_num_nodes', 'Nodes of the cluster, including this one.', [], ({ nodes }) => [
    [nodes],
  ]),
  gauge(
    'centrifugo_client_connections_inflight',
    'Connected clients, by transport.',
    ['transport', 'accept_protocol', 'client_name', 'client_version'],
    ({ snapshot }) =>
      Object.entries(snapshot.totals.connections.by).map(([transport, codecs]) => [
        sum(codecs),
        transport,
        '',
        '',
        '',
      ]),
  ),
  counter(
    'centrifugo_client_num_server_disconnects',
    'Connections closed by the gateway, by code.',
    ['code'],
    ({ snapshot }) =>
      Object.entries(snapshot.counters.closes).flatMap(([code, count]) =>
        isOwnCode(code) ? [[count, code]] : [],
      ),
  ),
  counter(
    'centrifugo_client_recover',
    'Subscriptions that requested recovery, by success ("yes" or "no").',
    ['recovered', 'has_recovered_publications', 'channel_namespace'],
    ({ snapshot: { counters } }) => [
      [counters.recoveries.recovered, 'yes', '', ''],
      [counters.recoveries.failed, 'no', '', ''],
    ],
  ),
  counter(
    'centrifugo_api_command_errors_total',
    'Error replies of the server API, by code.',
    ['protocol', 'method', 'error'],
    ({ snapshot }) => {
      const consuming = snapshot.consumers?.api_errors ?? {}
      const http = Object.entries(snapshot.counters.api_errors).map(
        ([code, count]) => /** @type {const} */ ([code, count - (consuming[code] ?? 0)]),
      )
      return [...byLabel(Object.fromEntries(http), 'http', ''), ...byLabel(consuming, 'consuming', '')]
    },
  ),
  histogram(
    'centrifugo_proxy_duration_seconds_histogram',
    'Durations of calls of event proxies, by protocol, event and name of the proxy.',
    PROXY,
    facts =>
      hooksOf(facts).flatMap(([name, counts]) =>
        isProxy(name) ? [[durations(counts, FIRST), ...name.split(' ')]] : [],
      ),
  ),
  counter('centrifugo_proxy_errors', 'Failed calls of event proxies.', PROXY, facts =>
    hooksOf(facts).flatMap(([name, { failures }]) => {
      const counted = Object.entries(failures).filter(([kind]) => !UNCOUNTED.has(kind))
      return isProxy(name) ? [[sum(Object.fromEntries(counted)), ...name.split(' ')]] : []
    }),
  ),
  gauge('centrifugo_proxy_inflight_requests', 'Pending calls of event proxies.', PROXY, ({ snapshot }) =>
    Object.entries(snapshot.totals.hooks).flatMap(([name, { inflight }]) =>
      isProxy(name) ? [[inflight, ...name.split(' ')]] : [],
    ),
  ),
  gauge(
    'halley_node_info',
    'Always 1; the labels describe the node.',
    ['name', 'version', 'node_version', 'engine', 'driver'],
    ({ snapshot: { node } }) => [[1, node.name, node.version, node.node_version, node.engine, node.driver]],
  ),
  gauge(
    'halley_connections_fit',
    'Estimated number of additional connections that fit; the label names the limit (memory, files, connection_limit).',
    ['bound'],
    ({ snapshot: { capacity } }) => [[capacity.fits, capacity.bound ?? '']],
  ),
  histogram(
    'halley_hook_duration_seconds',
    'Durations of calls of hooks and event proxies, by protocol (module, http, grpc), event and name.',
    HOOK,
    facts => hooksOf(facts).map(([name, counts]) => [durations(counts), ...name.split(' ')]),
  ),
  histogram(
    'halley_batch_items',
    'Publications, joins and leaves that a worker sent together, of each flush of a batched channel.',
    [],
    ({ snapshot: { counters } }) => {
      const { flushes, items, within } = counters.batches
      return [[{ bounds: BATCH_BOUNDS, counts: within, count: sum(flushes), sum: items }]]
    },
  ),
  counter(
    'halley_republish_outcomes_total',
    'Completed messages, by outcome: confirmed, returned, refused or dropped.',
    ['republisher_name', 'outcome'],
    ({ snapshot }) =>
      (snapshot.republishers ?? []).flatMap(({ name, confirmed, returned, refused, dropped }) =>
        byLabel({ confirmed, returned, refused, dropped }, name),
      ),
  ),
  counter(
    'halley_republish_lost_total',
    'Publications lost by the gateway, by reason: `queue_full` (also counted as dropped), `no_process` (no queue process), `process_died` (in its memory, upper bound).',
    ['republisher_name', 'reason'],
    ({ snapshot }) =>
      (snapshot.republishers ?? []).flatMap(({ name, dropped, unreached, abandoned }) =>
        byLabel({ queue_full: dropped, no_process: unreached, process_died: abandoned }, name),
      ),
  ),
  histogram(
    'halley_event_loop_delay_seconds',
    'Event-loop delay: how long events waited for the event loop, measured every 10 ms.',
    ['worker'],
    ({ snapshot: { lifetimes } }) =>
      [lifetimes.primary, ...lifetimes.workers].map(({ ticks: { count, sum, within } }, i) => [
        { bounds: TICK_BOUNDS.map(seconds), counts: within, count, sum: seconds(sum) },
        i === 0 ? 'primary' : i - 1,
      ]),
  ),
  gauge(
    'halley_machine_load',
    'Load average over the last 1, 5 and 15 minutes.',
    ['minutes'],
    ({ snapshot }) => (snapshot.machine.load ?? []).map((load, i) => [load, [1, 5, 15][i]]),
  ),
  gauge(
    'halley_machine_memory_bytes',
    'Memory by kind: "used", "caches" (page cache, buffers, reclaimable slab) and "free". Their sum is the total.',
    ['kind'],
    ({ snapshot: { machine } }) => [
      [machine.memory.used, 'used'],
      [machine.memory.caches, 'caches'],
      [machine.memory.free, 'free'],
    ],
  ),
]

/** Titles of docs/metrics.md, in its order. @type {Readonly<Record<Family['group'], string>>} */
export const GROUPS = Object.freeze({
  centrifugo: "With Centrifugo's names",
  node: 'The node',
  workers: 'Workers',
  processes: 'Processes',
  machine: 'The machine',
})

export const families = Object.freeze(
  Object.keys(GROUPS).flatMap(name => [...ofTable, ...computed].filter(({ group }) => group === name)),
)
