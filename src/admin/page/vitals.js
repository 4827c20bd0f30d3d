import { byId, make } from '../../demo/page/dom.js'
import { alarmBy, bytes, duration, healthBy, ms, percent, short, whole } from './format.js'

/** @import { Snapshot } from '../../stats/schema.js' */

/** @param {number[]} parts */
const sum = parts => parts.reduce((total, part) => total + part, 0)

/**
 * @typedef {{label: string, value: (snapshot: Snapshot) => string, note: (snapshot: Snapshot) => string,
 *   tone?: (snapshot: Snapshot) => string}} Tile
 */

/** @param {Snapshot['machine']} machine */
const busy = ({ cpu }) => (cpu === null ? null : 1 - cpu.idle - cpu.iowait)

/** @param {Snapshot} snapshot */
function capacityNote({ capacity, totals }) {
  const { fits, bytes_per_connection: each } = capacity
  const open = `${whole(totals.connections.open)} open`
  const of = each === null ? '' : ` · ${bytes(each)} each`
  return fits === null ? `${open}${of}` : `${open}${of} · about ${short(fits)} more fit`
}

const tickHealth = healthBy('tickP90')
const machineAlarm = alarmBy('machine')

/** @type {Tile[]} */
const TILES = [
  { label: 'Clients', value: ({ totals }) => short(totals.connections.connected), note: capacityNote },
  {
    label: 'Messages out',
    value: ({ totals, interval }) => `${short((totals.counts.out.messages * 1000) / interval)}/s`,
    note: ({ totals, interval }) =>
      `${short((totals.counts.in.messages * 1000) / interval)}/s in · ${bytes((totals.counts.out.bytes * 1000) / interval)}/s out`,
  },
  {
    label: 'Event-loop delay, p90',
    value: ({ totals }) => `${ms(totals.loop.ticks.p90)} ms`,
    note: ({ totals }) =>
      `longest ${ms(totals.loop.ticks.max)} ms · busiest loop ${percent(totals.loop.utilization)}`,
    tone: ({ totals }) => tickHealth(totals.loop.ticks.p90),
  },
  {
    label: 'Gateway',
    value: ({ totals }) => bytes(totals.memory.rss),
    note: ({ totals }) =>
      `heap ${bytes(totals.memory.heap_used)} · CPU ${percent(sum(Object.values(totals.cpu)))} of a core`,
  },
  {
    label: 'Machine CPU',
    value: ({ machine }) => percent(busy(machine)),
    note: ({ machine: { cores, load, cpu } }) =>
      [
        `${cores} cores`,
        load && `load ${load[0].toFixed(1)}`,
        cpu && cpu.steal >= 0.005 && `${percent(cpu.steal)} stolen`,
      ]
        .filter(Boolean)
        .join(' · '),
    tone: ({ machine }) => machineAlarm(busy(machine) ?? 0),
  },
  {
    label: 'Machine memory',
    value: ({ machine }) => percent(machine.memory.used / machine.memory.total),
    note: ({ machine: { memory } }) => `${bytes(memory.available)} available of ${bytes(memory.total)}`,
    tone: ({ machine: { memory } }) => machineAlarm(1 - memory.available / memory.total),
  },
]

/** The facts of the node and its most important figures. */
export class Vitals {
  #tiles

  constructor() {
    this.#tiles = TILES.map(tile => {
      const value = make('p', 'value', '–')
      const note = make('p', 'note', '\u00a0')
      byId('vitals').append(make('article', 'card tile', make('h2', '', tile.label), value, note))
      return { tile, value, note }
    })
  }

  /** @param {Snapshot} snapshot */
  show(snapshot) {
    const { node, time } = snapshot
    byId('node-name').textContent = node.name
    byId('node-facts').textContent = [
      `up ${duration(time - node.started_at)}`,
      node.url,
      `Halley ${node.version}`,
      `${node.engine} engine`,
      `${node.driver} driver`,
      `Node.js ${node.node_version}`,
      `pid ${node.pid}`,
    ].join(' · ')
    for (const { tile, value, note } of this.#tiles) {
      value.textContent = tile.value(snapshot)
      value.className = `value ${tile.tone?.(snapshot) ?? ''}`
      note.textContent = note.title = tile.note(snapshot)
    }
  }
}
