import { bytes, duration, milliseconds, share, short, UNKNOWN, whole } from '../../../base/format.js'
import { byId, make } from '../../web/dom.js'
import { alarmBy, healthBy } from './health.js'

/** @import { Snapshot } from '../../../metrics/schema.js' */

/**
 * @typedef {object} Tile
 * @property {string} label
 * @property {(snapshot: Snapshot) => string} value
 * @property {(snapshot: Snapshot) => string} note the small line below the value
 * @property {(snapshot: Snapshot) => string} [tone] CSS class of the value: '', good, warn or bad
 */

/** @param {Snapshot['machine']} machine @returns {number | null} share from 0 to 1; null if unknown */
const busyCpu = ({ cpu }) => (cpu === null ? null : 1 - cpu.idle - cpu.iowait)

/** @param {number} count in the interval of a snapshot @param {Snapshot} snapshot @returns {number} a second */
const perSecond = (count, { interval }) => (count * 1000) / interval

/** @param {Snapshot} snapshot */
function capacityNote({ capacity, totals }) {
  const { fits, bytes_per_connection: each } = capacity
  const open = `${whole(totals.connections.open)} open`
  const size = each === null ? '' : ` · ${bytes(each)} each`
  return fits === null ? `${open}${size}` : `${open}${size} · about ${short(fits)} more fit`
}

const tickHealth = healthBy('tickP90')
const machineAlarm = alarmBy('machine')

/** @type {Tile[]} */
const TILES = [
  { label: 'Clients', value: ({ totals }) => short(totals.connections.connected), note: capacityNote },
  {
    label: 'Messages out',
    value: snapshot => `${short(perSecond(snapshot.totals.counts.out.messages, snapshot))}/s`,
    note: snapshot => {
      const { counts } = snapshot.totals
      const messagesIn = short(perSecond(counts.in.messages, snapshot))
      return `${messagesIn}/s in · ${bytes(perSecond(counts.out.bytes, snapshot))}/s out`
    },
  },
  {
    label: 'Event-loop delay, p90',
    value: ({ totals }) => milliseconds(totals.loop.ticks.p90),
    note: ({ totals }) =>
      `longest ${milliseconds(totals.loop.ticks.max)} · busiest loop ${share(totals.loop.utilization)}`,
    tone: ({ totals }) => tickHealth(totals.loop.ticks.p90),
  },
  {
    label: 'Gateway memory',
    value: ({ totals }) => bytes(totals.memory.rss),
    note: ({ totals }) =>
      `heap ${bytes(totals.memory.heap_used)} · CPU ${share(totals.cpu.user + totals.cpu.system)} of a core`,
  },
  {
    label: 'Machine CPU',
    value: ({ machine }) => share(busyCpu(machine)),
    note: ({ machine: { cores, load, cpu } }) =>
      [
        `${cores} cores`,
        load && `load ${load[0].toFixed(1)}`,
        cpu && cpu.steal >= 0.005 && `${share(cpu.steal)} stolen`,
      ]
        .filter(Boolean)
        .join(' · '),
    tone: ({ machine }) => machineAlarm(busyCpu(machine) ?? 0),
  },
  {
    label: 'Machine memory',
    value: ({ machine }) => share(machine.memory.used / machine.memory.total),
    note: ({ machine: { memory } }) => `${bytes(memory.available)} available of ${bytes(memory.total)}`,
    tone: ({ machine: { memory } }) => machineAlarm(1 - memory.available / memory.total),
  },
]

/** Head of the page: name and facts of the node, and a tile for each of its main figures. */
export class Vitals {
  #tiles

  constructor() {
    this.#tiles = TILES.map(tile => {
      const value = make('p', 'value', UNKNOWN)
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
      `${node.driver} driver${node.driver_fallback ? ` (${node.driver_fallback})` : ''}`,
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
