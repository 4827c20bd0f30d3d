import { bytes, clock, duration, quantity, share, short, whole } from '../../src/base/format.js'
import { metricAt } from '../../src/metrics/table.js'
import { stackedBar } from '../chart.js'
import { health, healthSpan } from '../health.js'
import { isStale } from '../state.js'
import { lineWidth, sideBySide } from '../terminal/line.js'
import { statusOf, waitingOf } from '../view/panels.js'
import { fitItems, justified, named, wrapped } from '../view/parts.js'
import { shown } from '../view/state.js'

/** @import { ProcessSample, Snapshot } from '../../src/metrics/schema.js' */
/** @import { Panel, State } from '../state.js' */
/** @import { Line, Span } from '../terminal/line.js' */

/** @typedef {State['look']} Look */

const WIDE = 150
const BAR = { min: 10, max: 30 }

/** The node and its machine. @type {Panel} */
export const header = {
  name: 'header',
  visible: state => shown(state).snapshot !== null,
  rows: state => {
    const { size, view } = state
    const all = (size.columns >= WIDE ? 3 : 5) + notices(state, size.columns).length
    return { min: 1, max: view === 'main' || size.rows >= 40 ? all + Number(size.rows >= 40) : 1 }
  },
  priority: 2,

  draw(state, width, rows) {
    const snapshot = /** @type {Snapshot} */ (shown(state).snapshot)
    const title = titleLine(snapshot, width)
    if (rows === 1) return [title]
    const lead = [title, ...notices(state, width)].slice(0, rows)
    const room = rows - lead.length
    if (width < WIDE) {
      const lines = [cpuLine, capacityLine, memoryLine, networkLine].slice(0, room)
      const order = [cpuLine, memoryLine, networkLine, capacityLine].filter(line => lines.includes(line))
      return [...lead, ...order.map(line => line(snapshot, width, state.look))]
    }
    const half = Math.floor((width - 3) / 2)
    const left = [cpuLine(snapshot, half, state.look), memoryLine(snapshot, half, state.look)]
    const right = [networkLine(snapshot, half, state.look), capacityLine(snapshot, half, state.look)]
    return [...lead, ...sideBySide([left, right], [half, width - half - 3], 3).slice(0, room)]
  },
}

/** @param {State} state @param {number} width @returns {Line[]} notices on the main page */
function notices(state, width) {
  const snapshot = shown(state).snapshot
  const slow = state.view === 'main' && snapshot !== null ? (snapshot.node.driver_fallback ?? '') : ''
  /** @type {Line} */
  const key = [
    [' key  ', 'header'],
    [state.key, 'accent'],
    ['  for the API and the admin page', 'label'],
  ]
  return [
    // Needed for the first publication; nothing else here shows it.
    ...(state.key !== '' && state.view === 'main' ? [key] : []),
    // Not truncated, because it may end with a command.
    ...(slow === ''
      ? []
      : wrapped(`node driver: ${slow}`, width - 2).map(text => /** @type {Line} */ ([[` ${text}`, 'warn']]))),
  ]
}

/** @param {Snapshot} snapshot @param {number} width @returns {Line} */
function titleLine({ node, time, primary }, width) {
  /** @type {Line} */
  const left = [
    [' Halley ', 'title'],
    [node.version, 'label'],
    [`  ${node.name}`, 'accent'],
    [`  ${node.url}`, 'value'],
  ]
  /** @type {Line[]} dropped from the start if they do not fit */
  const right = [
    [
      [`primary ${node.pid} `, 'label'],
      [share(primary.cpu.user + primary.cpu.system), 'value'],
      [` ${bytes(primary.memory.rss)}`, 'value'],
    ],
    [[`${node.driver}, node ${node.node_version.replace(/^v/, '')}`, 'label']],
    [[`${node.engine} engine`, 'label']],
    named('up', duration(time - node.started_at)),
    [[clock(time), 'value']],
  ]
  const room = width - lineWidth(left) - 3
  while (right.length > 1 && right.reduce((sum, line) => sum + lineWidth(line) + 2, 0) > room) right.shift()
  return justified(left, [...fitItems(right, width), [' ', '']], width)
}

/** @param {string} path @param {string | Span} value @param {string} [style] of the label */
const metric = (path, value, style) => named(metricAt(`machine.${path}`).label, value, style)

/**
 * @param {string} name @param {{share: number, style: string}[]} parts @param {Line[]} items @param {number} width
 * @param {Look} look @returns {Line}
 */
function withBar(name, parts, items, width, look) {
  // Depends only on the terminal's width: all bars have the same length.
  const bar = Math.max(BAR.min, Math.min(BAR.max, Math.floor((width - 72) / 2)))
  return [
    [` ${name}  `, 'header'],
    ...stackedBar(parts, bar, look.unicode, look.colors),
    ['  ', ''],
    ...fitItems(items, width - bar - 8),
  ]
}

/** @param {Snapshot} snapshot @param {number} width @param {Look} look */
function cpuLine({ machine }, width, look) {
  const { cpu, load, cores } = machine
  const user = cpu?.user ?? 0
  const system = cpu?.system ?? 0
  const steal = cpu?.steal ?? 0
  const all = cpu === null ? null : 1 - cpu.idle - cpu.iowait
  const parts = [
    { share: user, style: 'series1' },
    { share: system, style: 'series2' },
    { share: steal, style: 'series5' },
  ]
  /** @type {Line[]} */
  const items = [
    [healthSpan(share(all).padStart(4), health(all, 'machine'), look.colors)],
    metric('cpu.user', share(cpu?.user).padStart(3), 'series1'),
    metric('cpu.system', share(cpu?.system).padStart(3), 'series2'),
    metric(
      'cpu.steal',
      healthSpan(share(cpu?.steal).padStart(2), health(steal, 'steal'), look.colors),
      'series5',
    ),
    metric('cpu.idle', share(cpu?.idle).padStart(4)),
    load === null
      ? []
      : metric(
          'load[]',
          load
            .slice(0, width < 80 ? 1 : 3)
            .map(value => value.toFixed(value < 10 ? 1 : 0))
            .join(' '),
        ),
    metric('cores', `${cores}`),
  ]
  return withBar('cpu', parts, items, width, look)
}

/** @param {Snapshot} snapshot @param {number} width @param {Look} look */
function memoryLine({ machine, totals }, width, look) {
  const { total, used, available, caches, free } = machine.memory
  // Shared pages count once per process; mapped program files count as caches.
  const gateway = totals.memory.rss + (totals.memory.kernel ?? 0)
  const others = Math.max(0, used - gateway)
  const parts = [
    { share: (used - others) / total, style: 'series1' },
    { share: others / total, style: 'series2' },
    { share: caches / total, style: 'series3' },
  ]
  const full = health(1 - available / total, 'full')
  const items = [
    named('gateway', bytes(gateway), 'series1'),
    named('others', bytes(others), 'series2'),
    metric('memory.caches', bytes(caches), 'series3'),
    metric('memory.free', healthSpan(bytes(free), full, look.colors)),
    named('of', bytes(total)),
  ]
  return withBar('mem', parts, items, width, look)
}

/** @param {Snapshot} snapshot @param {number} width @param {Look} look @returns {Line} */
function networkLine({ machine, interval }, width, look) {
  const { network, sockets, listen } = machine
  const overflows = listen === null ? null : (listen.overflows * 1000) / interval
  const lost = health(overflows, 'overflows')
  const items = [
    metric('network.rx_bytes', `${bytes(network?.rx_bytes)}/s`),
    metric('network.tx_bytes', `${bytes(network?.tx_bytes)}/s`),
    metric('sockets.used', quantity(sockets?.used)),
    metric('sockets.tcp.memory', bytes(sockets?.tcp.memory)),
    metric(
      'listen.overflows',
      lost === 'good' ? short(overflows) : healthSpan(`${short(overflows)}/s`, lost, look.colors),
    ),
    sockets === null ? [] : metric('sockets.tcp.time_wait', quantity(sockets.tcp.time_wait)),
    network === null
      ? []
      : metric('network.rx_packets', `${short(network.rx_packets)} ${short(network.tx_packets)}`),
  ]
  return [[' net  ', 'header'], ...fitItems(items, width - 6)]
}

/** @type {Record<string, string>} names of the limiting resources */
const BOUNDS = { memory: 'memory', files: 'open files', connection_limit: 'connection_limit' }

/** @param {Snapshot} snapshot @param {number} width @param {Look} look @returns {Line} */
function capacityLine({ capacity, machine, workers, primary }, width, look) {
  const { fits, bound, bytes_per_connection: each, kernel_per_connection: kernel } = capacity
  /** @type {Line} */
  const answer =
    fits === null
      ? [[each === null ? 'estimate needs 1,000 connections' : 'not known yet', 'label']]
      : [
          ['about ', 'label'],
          [rounded(fits), fits > 0 ? 'header' : 'bad'],
          [' more connections', 'label'],
        ]
  /** @type {Line} */
  const cost = []
  if (each !== null && each > 0) {
    cost.push([bytes(each), 'value'], [' each', 'label'])
    if (kernel !== null && kernel > 0)
      cost.push([' + ', 'label'], [bytes(kernel), 'value'], [' kernel', 'label'])
  }
  const items = [
    answer,
    cost,
    filesItem([primary, ...workers.flatMap(({ sample }) => sample ?? [])], look),
    bound === null ? [] : named('limited by', BOUNDS[bound] ?? bound),
    machine.files === null ? [] : named('machine', filesOf(machine.files)),
  ]
  return [[' capacity ', 'header'], ...fitItems(items, width - 10)]
}

/** @param {{open: number, limit: number}} files of the machine; on many systems the limit is the largest integer */
const filesOf = ({ open, limit }) =>
  limit > Number.MAX_SAFE_INTEGER ? `${short(open)} files` : `${short(open)}/${short(limit)} files`

/** Open files of the process nearest to its limit. @param {ProcessSample[]} processes @param {Look} look */
function filesItem(processes, look) {
  const shares = processes.map(({ files: { open, limit } }) => (open === null || !limit ? -1 : open / limit))
  const max = Math.max(...shares)
  if (max < 0) return []
  const { open, limit } = processes[shares.indexOf(max)].files
  return named(
    metricAt('primary.files.open').label,
    healthSpan(`${short(open)}/${short(limit)}`, health(max, 'full'), look.colors),
  )
}

/** @param {number} value @returns {string} an estimate, rounded down to two digits */
function rounded(value) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 1)
  return whole(Math.floor(value / step) * step)
}

/** Why the figures are stale. @type {Panel} */
export const status = statusOf(isStale, (state, time) => [
  `${staleReason(state)}; last update ${time}`,
  state.link.state === 'connecting' ? 'warn' : 'bad',
])

/** @param {State} state @returns {string} */
function staleReason({ link, receivedAt, now }) {
  switch (link.state) {
    case 'open':
      return `no data for ${duration(now - receivedAt)}: the gateway's primary process is stuck or stopped`
    case 'refused':
      return link.text
    case 'lost':
      return `gateway unreachable, retrying for ${duration(now - link.since)} (${link.text})`
    case 'connecting':
      return 'connecting'
  }
}

/** @type {Record<import('../source.js').LinkState, string>} */
const STYLES = { connecting: 'label', open: 'label', lost: 'warn', refused: 'bad' }

/** Shown before the first figures. @type {Panel} */
export const waiting = waitingOf('Halley', state => {
  const { link, now } = state
  const style = STYLES[link.state]
  if (link.state === 'open') return ['connected, waiting for the first snapshot', style]
  if (link.state === 'lost') return [`${link.text}; retrying for ${duration(now - link.since)}`, style]
  return [staleReason(state), style]
})
