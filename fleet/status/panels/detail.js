import { tableRow } from '../../../dashboard/terminal/line.js'
import {
  BACK,
  blockColumns,
  blockTitle,
  detailPage,
  figure,
  packBlocks,
  rule,
} from '../../../dashboard/view/parts.js'
import { shown } from '../../../dashboard/view/state.js'
import { bytes, duration, ms, quantity, share, short, whole } from '../../../src/base/format.js'

import { ACCOUNTS } from './accounting.js'
import { clockText, STATE_STYLES } from './drones.js'

/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../../../dashboard/terminal/line.js').Span} Span
 * @typedef {import('../state.js').State} State
 * @typedef {import('../../schema.js').DroneRow} DroneRow
 * @typedef {import('../../schema.js').DroneSample} DroneSample
 * @typedef {(name: string, value: string | Span) => Line} Figure
 */

/** Everything about one drone. @type {import('../state.js').Panel} */
export const detail = {
  name: 'detail',
  visible: state => state.view === 'detail' && shown(state).snapshot !== null,
  rows: () => ({ least: 8, most: Number.POSITIVE_INFINITY }),
  priority: 5,

  draw(state, width, rows) {
    const { snapshot, previous } = shown(state)
    const row = snapshot?.drones.find(({ id }) => id === state.selected)
    if (row === undefined) return [rule('drone', width, BACK), [[' this drone is gone', 'label']]]
    const { sample } = row
    const up = sample === null ? '' : `  up ${duration(sample.up)}`
    const title = `drone ${row.id}  ${row.state}  ${row.where} ${row.handle}${up}`
    const columns = blockColumns(width)
    const own = (/** @type {string} */ name, /** @type {string | Span} */ value) =>
      figure(name, clipped(value, name, columns.width), columns.width)
    if (sample === null) {
      const facts = [factBlock(row, own)]
      const why = /** @type {Line} */ ([[` no figures: it is ${row.state}`, STATE_STYLES[row.state]]])
      return detailPage(title, [why], packBlocks(facts, columns), state, width, rows)
    }
    const before = previous?.drones.find(({ id }) => id === row.id)?.sample ?? null
    const blocks = packBlocks(blocksOf(row, sample, before, own, state.look), columns)
    return detailPage(title, [], [...blocks, [], ...processes(sample, width)], state, width, rows)
  },
}

/**
 * @param {string | Span} value
 * @param {string} name short, and needed to understand the rest of a long value
 * @param {number} width of both
 * @returns {Span}
 */
function clipped(value, name, width) {
  const [text, style] = typeof value === 'string' ? [value, 'value'] : value
  const room = Math.max(8, width - name.length - 1)
  return [text.length > room ? `${text.slice(0, room - 1)}…` : text, style]
}

/**
 * @param {DroneRow} row @param {DroneSample} sample
 * @param {DroneSample | null} before the sample before it
 * @param {Figure} own @param {State['look']} look
 * @returns {Line[][]} of each the first line is the title
 */
function blocksOf(row, sample, before, own, look) {
  const { gauges, counters, clock } = sample
  const bad = new Map(ACCOUNTS)
  const counted = (/** @type {keyof typeof counters} */ name) => {
    const value = counters[name]
    const style = value > 0 ? (bad.get(name) ?? 'value') : bad.has(name) ? 'good' : 'value'
    const mark = look.colors || value === 0 || !bad.has(name) ? '' : '!'
    return own(name, [`${whole(value)}${mark}`, style])
  }
  const all = (/** @type {(keyof typeof counters)[]} */ ...names) => names.map(counted)
  return [
    [
      blockTitle('connections'),
      own('open', quantity(gauges.open)),
      own('wanted', quantity(gauges.wanted)),
      own('opening', quantity(gauges.opening)),
      own('memory of each', row.bytesPerConnection > 0 ? bytes(row.bytesPerConnection) : 'too few to say'),
      ...all('opened', 'reconnects', 'closed', 'failed', 'ended', 'refused', 'pings'),
    ],
    [
      blockTitle('messages'),
      own('received', `${short(row.rates.received)}/s`),
      own('published', `${short(row.rates.published)}/s`),
      own('in', `${bytes(row.rates.bytesIn)}/s`),
      own('out', `${bytes(row.rates.bytesOut)}/s`),
      own('p99 of 5 s', row.p99 > 0 ? `${ms(row.p99)} ms` : '-'),
      ...all('received', 'published', 'unpublished'),
    ],
    [
      blockTitle('checked'),
      ...all('lost', 'gaps', 'duplicates', 'disordered', 'damaged', 'missed', 'recovered', 'unrecovered'),
    ],
    [
      blockTitle('drone'),
      own('cpu', share(row.cpu)),
      own('clock, ms', clockText(clock)),
      own('restarts', [whole(row.restarts), row.restarts > 0 ? 'warn' : 'value']),
      own('processes that died', [whole(sample.deaths), sample.deaths > 0 ? 'warn' : 'value']),
      own('settings', `revision ${whole(sample.revision)}`),
    ],
    machineBlock(sample, before, own),
    factBlock(row, own),
    [
      blockTitle('faults'),
      ...Object.entries(sample.faults)
        .sort(([, a], [, b]) => b - a)
        .map(([kind, times]) => own(kind, [quantity(times), 'warn'])),
    ],
  ]
}

/** @param {DroneSample} sample @param {DroneSample | null} before @param {Figure} own @returns {Line[]} */
function machineBlock({ machine, at }, before, own) {
  if (machine === null) return []
  const past = before?.machine ?? null
  const seconds = before === null ? 0 : (at - before.at) / 1000
  /** @param {'cpuBusy' | 'netIn' | 'netOut'} name */
  const rate = name =>
    past === null || seconds <= 0 ? null : Math.max(0, machine[name] - past[name]) / seconds
  const busy = rate('cpuBusy')
  return [
    blockTitle('machine'),
    own('cpu', busy === null ? '-' : share(busy / 1000 / machine.cores)),
    own('cores', whole(machine.cores)),
    own('memory', bytes(machine.memory)),
    own('free', bytes(machine.memoryFree)),
    own('network in', `${bytes(rate('netIn'))}/s`),
    own('network out', `${bytes(rate('netOut'))}/s`),
    own('TCP memory', bytes(machine.tcpMemory)),
    own('sockets', quantity(machine.sockets)),
    own('time-wait', quantity(machine.timeWait)),
  ]
}

/** @param {DroneRow} row @param {Figure} own @returns {Line[]} */
function factBlock({ facts }, own) {
  if (facts === null) return []
  return [
    blockTitle('facts'),
    own('host', facts.hostname),
    own('system', facts.system),
    own('node', facts.node.replace(/^v/, '')),
    own('pid', `${facts.pid}`),
    own('open files, at most', quantity(facts.files)),
    own('connections, at most', quantity(facts.capacity)),
  ]
}

/** @typedef {import('../../schema.js').DroneProcess} DroneProcess */

/** @type {readonly [title: string, width: number, text: (process: DroneProcess) => string][]} */
const PROCESS_COLUMNS = [
  ['process', 11, ({ role }) => role],
  ['pid', 8, ({ pid }) => `${pid}`],
  ['connections', 12, ({ connections }) => quantity(connections)],
  ['cpu time', 9, ({ cpu }) => duration(cpu)],
  ['rss', 8, ({ rss }) => bytes(rss)],
  ['private', 8, process => bytes(process.private)],
  ['base', 8, ({ base }) => bytes(base)],
  ['each', 8, ({ connections: n, base, private: own }) => (n >= 100 ? bytes((own - base) / n) : '-')],
]

/** @param {DroneSample} sample @param {number} width @returns {Line[]} */
function processes({ processes }, width) {
  let list = PROCESS_COLUMNS
  while (list.reduce((sum, [, width]) => sum + width + 1, 1) > width) list = list.slice(0, -1)
  /** @type {{width: number, align: 'left' | 'right'}[]} */
  const layout = list.map(([, width], at) => ({ width, align: at === 0 ? 'left' : 'right' }))
  return [
    tableRow(
      list.map(([title], at) => [title, at === 0 ? 'header' : 'label']),
      layout,
    ),
    ...processes.map(process =>
      tableRow(
        list.map(([, , text], at) => [text(process), at === 0 ? 'accent' : 'value']),
        layout,
      ),
    ),
  ]
}
