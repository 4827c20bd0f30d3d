import { count, duration, people, percent, size, whole } from '../../../dashboard/format.js'
import { rule, scrolled } from '../../../dashboard/panels/parts.js'
import { beside, columns, pad } from '../../../dashboard/terminal/line.js'
import { STATE_STYLES } from '../drone-columns.js'
import { clockText, fine } from '../format.js'
import { shown } from '../picture.js'
import { ACCOUNTS } from './accounting.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').Span} Span
 * @typedef {import('./panel.js').State} State
 * @typedef {import('../../schema.js').DroneRow} DroneRow
 * @typedef {import('../../schema.js').DroneSample} DroneSample
 * @typedef {(name: string, value: string | Span) => Line} Figure
 */

/** Columns of a block, and between two of them. */
const BLOCK = { least: 25, most: 38, gap: 2 }

/** @type {Line} */
const BACK = [
  ['esc', 'key'],
  [' back', 'label'],
]
/** @type {Line} */
const MORE = [['page down', 'key'], [' more  ', 'label'], ...BACK]

/**
 * Everything about one drone.
 * @type {import('./panel.js').Panel}
 */
export const detail = {
  name: 'detail',
  visible: state => state.view === 'detail' && shown(state).snapshot !== null,
  rows: () => ({ least: 8, most: Number.POSITIVE_INFINITY }),
  turn: 5,

  draw(state, width, rows) {
    const { snapshot, previous } = shown(state)
    const row = snapshot?.drones.find(({ id }) => id === state.selected)
    if (row === undefined)
      return [rule('drone', width, BACK), [[' this drone is not there any more', 'label']]]
    const { sample } = row
    const title = `drone ${row.id}  ${row.state}  ${row.where} ${row.handle}${sample === null ? '' : `  up ${duration(sample.up)}`}`
    if (sample === null)
      return [
        rule(title, width, BACK),
        [[` nothing is known of it: it is ${row.state}`, STATE_STYLES[row.state]]],
        ...factBlock(row, (name, value) => figure(name, value, BLOCK.most)).map(indented),
      ]
    const before = previous?.drones.find(({ id }) => id === row.id)?.sample ?? null
    const used = Math.min(5, Math.max(1, Math.floor((width - 1 + BLOCK.gap) / (BLOCK.least + BLOCK.gap))))
    const each = Math.min(BLOCK.most, Math.floor((width - 1 + BLOCK.gap) / used) - BLOCK.gap)
    const own = (/** @type {string} */ name, /** @type {string | Span} */ value) => figure(name, value, each)
    const blocks = blocksOf(row, sample, before, own, state.look)
    const lines = [
      ...beside(stacked(blocks, used), new Array(used).fill(each), BLOCK.gap),
      [],
      ...processes(sample, width),
    ].map(indented)
    const right = lines.length < rows ? BACK : MORE
    return [rule(title, width, right), ...scrolled(lines, rows - 1, state.scroll)]
  },
}

/** @param {Line} line @returns {Line} */
const indented = line => [[' ', ''], ...line]

/** @param {string} text @returns {Line} */
const title = text => [[text, 'header']]

/**
 * @param {string} name
 * @param {string | Span} value at the right end
 * @param {number} width
 * @returns {Line}
 */
function figure(name, value, width) {
  const [whole, style] = typeof value === 'string' ? [value, /** @type {const} */ ('value')] : value
  // A name is short, and says what the rest of a long value is about.
  const room = Math.max(8, width - name.length - 1)
  const text = whole.length > room ? `${whole.slice(0, room - 1)}…` : whole
  return [
    ...pad([[name, 'label']], Math.max(0, width - text.length - 1), 'left', '…'),
    [' ', ''],
    [text, style],
  ]
}

/**
 * @param {Line[][]} blocks the most important ones first
 * @param {number} used columns
 * @returns {Line[][]} each block on the stack that is the lowest
 */
function stacked(blocks, used) {
  /** @type {Line[][]} */
  const stacks = Array.from({ length: used }, () => [])
  for (const block of blocks) {
    if (block.length < 2) continue
    const stack = stacks.reduce((lowest, stack) => (stack.length < lowest.length ? stack : lowest))
    if (stack.length > 0) stack.push([])
    stack.push(...block)
  }
  return stacks
}

/**
 * @param {DroneRow} row
 * @param {DroneSample} sample
 * @param {DroneSample | null} before the sample before it
 * @param {Figure} own
 * @param {State['look']} look
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
  return [
    [
      title('connections'),
      own('open', people(gauges.open)),
      own('wanted', people(gauges.wanted)),
      own('opening', people(gauges.opening)),
      own('memory of each', row.bytesPerConnection > 0 ? size(row.bytesPerConnection) : 'too few to say'),
      counted('opened'),
      counted('reconnects'),
      counted('closed'),
      counted('failed'),
      counted('ended'),
      counted('refused'),
      counted('pings'),
    ],
    [
      title('messages'),
      own('received', `${count(row.rates.received)}/s`),
      own('published', `${count(row.rates.published)}/s`),
      own('in', `${size(row.rates.bytesIn)}/s`),
      own('out', `${size(row.rates.bytesOut)}/s`),
      own('p99 of 5 s', row.p99 > 0 ? `${fine(row.p99)} ms` : '-'),
      counted('received'),
      counted('published'),
      counted('unpublished'),
    ],
    [
      title('checked'),
      counted('lost'),
      counted('gaps'),
      counted('duplicates'),
      counted('disordered'),
      counted('damaged'),
      counted('missed'),
      counted('recovered'),
      counted('unrecovered'),
    ],
    [
      title('drone'),
      own('cpu', percent(row.cpu)),
      own('clock, ms', clockText(clock)),
      own('restarts', [whole(row.restarts), row.restarts > 0 ? 'warn' : 'value']),
      own('processes that died', [whole(sample.deaths), sample.deaths > 0 ? 'warn' : 'value']),
      own('settings', `revision ${whole(sample.revision)}`),
    ],
    machineBlock(sample, before, own),
    factBlock(row, own),
    [
      title('faults'),
      ...Object.entries(sample.faults)
        .sort(([, a], [, b]) => b - a)
        .map(([kind, times]) => own(kind, [people(times), 'warn'])),
    ],
  ]
}

/**
 * @param {DroneSample} sample
 * @param {DroneSample | null} before
 * @param {Figure} own
 * @returns {Line[]}
 */
function machineBlock({ machine, at }, before, own) {
  if (machine === null) return []
  const past = before?.machine ?? null
  const seconds = before === null ? 0 : (at - before.at) / 1000
  /** @param {'cpuBusy' | 'netIn' | 'netOut'} name */
  const rate = name =>
    past === null || seconds <= 0 ? null : Math.max(0, machine[name] - past[name]) / seconds
  const busy = rate('cpuBusy')
  return [
    title('machine'),
    own('cpu', busy === null ? '-' : percent(busy / 1000 / machine.cores)),
    own('cores', whole(machine.cores)),
    own('memory', size(machine.memory)),
    own('free', size(machine.memoryFree)),
    own('network in', `${size(rate('netIn'))}/s`),
    own('network out', `${size(rate('netOut'))}/s`),
    own('TCP memory', size(machine.tcpMemory)),
    own('sockets', people(machine.sockets)),
    own('time-wait', people(machine.timeWait)),
  ]
}

/**
 * @param {DroneRow} row
 * @param {Figure} own
 * @returns {Line[]}
 */
function factBlock({ facts }, own) {
  if (facts === null) return []
  return [
    title('facts'),
    own('host', facts.hostname),
    own('system', facts.system),
    own('node', facts.node.replace(/^v/, '')),
    own('pid', `${facts.pid}`),
    own('open files, at most', people(facts.files)),
    own('connections, at most', people(facts.capacity)),
  ]
}

/** @type {{width: number, align: 'left' | 'right'}[]} */
const PROCESS = [
  { width: 11, align: 'left' },
  { width: 8, align: 'right' },
  { width: 12, align: 'right' },
  { width: 9, align: 'right' },
  { width: 8, align: 'right' },
  { width: 8, align: 'right' },
  { width: 8, align: 'right' },
  { width: 8, align: 'right' },
]

/**
 * @param {DroneSample} sample
 * @param {number} width
 * @returns {Line[]}
 */
function processes({ processes }, width) {
  let layout = PROCESS
  while (layout.reduce((sum, { width }) => sum + width + 1, 1) > width) layout = layout.slice(0, -1)
  const titles = ['process', 'pid', 'connections', 'cpu time', 'rss', 'private', 'base', 'each']
  return [
    columns(
      titles.map((text, at) => [text, at === 0 ? 'header' : 'label']),
      layout,
    ),
    ...processes.map(({ pid, role, connections, cpu, rss, private: own, base }) =>
      columns(
        [
          [role, 'accent'],
          [`${pid}`, 'value'],
          [people(connections), 'value'],
          [duration(cpu), 'value'],
          [size(rss), 'value'],
          [size(own), 'value'],
          [size(base), 'value'],
          [connections >= 100 ? size((own - base) / connections) : '-', 'value'],
        ],
        layout,
      ),
    ),
  ]
}
