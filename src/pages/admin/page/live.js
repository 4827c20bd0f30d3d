// The view `Live`: tiles, charts, workers with actions, queues and events.

import { bytes, duration, milliseconds, ms, share, short, UNKNOWN, whole } from '../../../base/format.js'
import { CSV_COLUMNS } from '../../../metrics/csv-columns.js'
import { LIMITS } from '../../../metrics/limits.js'
import { makeCharts } from '../../web/charts.js'
import { byId, make, showResult, smallButton } from '../../web/dom.js'
import { actions, figure, Table, words } from '../../web/table.js'
import { limitsTable } from './limits.js'
import { queuesTables } from './queues.js'
import { confirm, Refusal, reason } from './session.js'

/** @import { GatewayEvent, Snapshot, StatsMessage, WorkerSample, WorkerView } from '../../../metrics/schema.js' */
/** @import { Charts } from '../../web/charts.js' */
/** @import { TableColumn } from '../../web/table.js' */
/** @import { Session } from './session.js' */

/** @param {keyof typeof LIMITS} limit @returns {(value: number) => string} a class: good, warn or bad */
const healthBy = limit => value => {
  const [warn, bad] = LIMITS[limit]
  return value < warn ? 'good' : value < bad ? 'warn' : 'bad'
}

/** As `healthBy`, but '' for good. @param {keyof typeof LIMITS} limit @returns {(value: number) => string} */
const alarmBy = limit => value => healthBy(limit)(value).replace('good', '')

// Tiles

/**
 * @typedef {object} Tile
 * @property {string} label
 * @property {(snapshot: Snapshot) => string} value
 * @property {(snapshot: Snapshot) => string} note the small line below the value
 * @property {(snapshot: Snapshot) => string} [tone] CSS class of the value: '', good, warn or bad
 * @property {(snapshot: Snapshot) => boolean} [used] false: hidden
 */

/** @param {Snapshot['machine']} machine @returns {number | null} share from 0 to 1; null if unknown */
const busyCpu = ({ cpu }) => (cpu === null ? null : 1 - cpu.idle - cpu.iowait)

/** @param {number} count in the interval of a snapshot @param {Snapshot} snapshot @returns {number} a second */
const perSecond = (count, { interval }) => (count * 1000) / interval

/** @type {Tile[]} */
const TILES = [
  {
    label: 'Clients',
    value: ({ totals }) => short(totals.connections.connected),
    note: ({ capacity: { fits, bytes_per_connection: each }, totals }) =>
      [
        `${whole(totals.connections.open)} open`,
        each !== null && `${bytes(each)} each`,
        fits !== null && `room for about ${short(fits)} more`,
      ]
        .filter(Boolean)
        .join(' · '),
  },
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
    note: ({ totals: { loop } }) =>
      `longest ${milliseconds(loop.ticks.max)} · busiest loop ${share(loop.utilization)}`,
    tone: ({ totals }) => healthBy('tickP90')(totals.loop.ticks.p90),
  },
  {
    label: 'Gateway memory',
    value: ({ totals }) => bytes(totals.memory.rss),
    note: ({ totals: { memory, cpu } }) =>
      `heap ${bytes(memory.heap_used)} · CPU ${share(cpu.user + cpu.system)} of a core`,
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
    tone: ({ machine }) => alarmBy('machine')(busyCpu(machine) ?? 0),
  },
  {
    label: 'Machine memory',
    value: ({ machine }) => share(machine.memory.used / machine.memory.total),
    note: ({ machine: { memory } }) => `${bytes(memory.available)} available of ${bytes(memory.total)}`,
    tone: ({ machine: { memory } }) => alarmBy('machine')(1 - memory.available / memory.total),
  },
  {
    label: 'Map publishes',
    value: snapshot => `${short(perSecond(snapshot.totals.counts.maps.publishes, snapshot))}/s`,
    note: snapshot => {
      const { counts, maps } = snapshot.totals
      const rate = (/** @type {number} */ count) => `${short(perSecond(count, snapshot))}/s`
      return [
        maps.keys !== null && `${whole(maps.keys)} keys`,
        `${rate(counts.maps.removals)} removed`,
        `${rate(counts.maps.expiries)} expired`,
      ]
        .filter(Boolean)
        .join(' · ')
    },
    used: ({ totals, counters }) => (totals.maps.keys ?? 0) > 0 || counters.maps.publishes > 0,
  },
]

/** Name and facts of the node, and tiles. @returns {(snapshot: Snapshot) => void} */
function vitals() {
  const tiles = TILES.map(tile => {
    const value = make('p', 'value', UNKNOWN)
    const note = make('p', 'note', '\u00a0')
    const article = make('article', 'card tile', make('h2', '', tile.label), value, note)
    byId('vitals').append(article)
    return { tile, article, value, note }
  })
  return snapshot => {
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
    for (const { tile, article, value, note } of tiles) {
      article.hidden = tile.used?.(snapshot) === false
      value.textContent = tile.value(snapshot)
      value.className = `value ${tile.tone?.(snapshot) ?? ''}`
      note.textContent = note.title = tile.note(snapshot)
    }
  }
}

// Charts

/** Numeric columns. */
const CHARTED = CSV_COLUMNS.filter(({ name }) => name !== 'facts')
/** Seconds kept. */
const MAX_ROWS = 900

/** The report charts for the last minutes: columns named as in the CSV file. */
class LastMinutes {
  /** @type {Record<string, (number | null)[]>} */
  #columns = Object.fromEntries(CHARTED.map(({ name }) => [name, []]))
  #node = ''
  /** @type {Charts | null} made with the first data */
  #charts = null

  /** Keeps older rows of the same gateway process. @param {Snapshot[]} history oldest first */
  reset(history) {
    if (history.length > 0) {
      const { node, time } = history[0]
      const life = `${node.id} ${node.started_at}`
      const older = life === this.#node ? this.#columns.time.findIndex(at => Number(at) >= time) : 0
      if (older >= 0) for (const column of Object.values(this.#columns)) column.length = older
      this.#node = life
    }
    for (const snapshot of history) this.#push(snapshot)
    this.draw()
  }

  /** @param {Snapshot} snapshot newer than all others */
  add(snapshot) {
    this.#push(snapshot)
    this.draw()
  }

  /** @param {Snapshot} snapshot */
  #push(snapshot) {
    for (const { name, value } of CHARTED) {
      const column = this.#columns[name]
      column.push(/** @type {number | null} */ (value(snapshot)))
      if (column.length > MAX_ROWS) column.shift()
    }
  }

  draw() {
    const place = byId('charts')
    const { length } = this.#columns.time
    // Hidden charts are drawn when they become visible.
    if (document.hidden || place.offsetParent === null || length === 0) return
    byId('charts-span').textContent = duration(length * 1000)
    if (this.#charts) this.#charts.setData(this.#columns)
    else this.#charts = makeCharts(place, this.#columns, { live: true })
  }
}

// Workers

/**
 * A column of a worker's sample.
 * @param {string} label @param {string} hint @param {(sample: WorkerSample) => number} value
 * @param {(value: number) => string} text @param {(value: number) => string} [tone]
 * @returns {TableColumn<WorkerView>}
 */
const sampled = (label, hint, value, text, tone) =>
  figure(label, ({ sample }) => (sample === null ? null : value(sample)), text, { hint, tone })

/** @param {WorkerSample} sample */
const gcPause = ({ gc }) => gc.minor.pause + gc.major.pause + gc.incremental.pause + gc.weak.pause

/** @param {WorkerView} view @returns {WorkerView['state'] | 'overloaded'} */
const stateOf = ({ state, sample }) => (state === 'up' && sample?.overload ? 'overloaded' : state)

/** @type {Readonly<Record<ReturnType<typeof stateOf>, string>>} */
const TONES = { up: 'good', overloaded: 'bad', starting: 'warn', silent: 'bad', down: 'bad' }

/** @type {TableColumn<WorkerView>[]} */
const WORKERS = [
  figure('Worker', ({ index }) => index),
  words('State', stateOf, {
    hint: 'silent: no sample for more than 1.5 s; overloaded: refusing new connections',
    text: view =>
      [stateOf(view), (view.draining ?? 0) > 0 && 'draining', view.deaths > 0 && `${view.deaths}× exited`]
        .filter(Boolean)
        .join(', '),
    tone: view => TONES[stateOf(view)],
  }),
  sampled('PID', 'process id', ({ pid }) => pid, String),
  sampled('CPU', 'of one core', ({ cpu }) => cpu.user + cpu.system, share, alarmBy('cpu')),
  sampled('RSS', 'resident memory', ({ memory }) => memory.rss, bytes),
  sampled('Heap', 'JavaScript heap in use', ({ memory }) => memory.heap_used, bytes),
  sampled('Clients', 'connected', ({ connections }) => connections.connected, whole),
  sampled('Delay avg', 'event-loop delay: average, ms', s => s.loop.ticks.avg, ms, healthBy('tickAvg')),
  sampled('p90', 'event-loop delay: 90th percentile, ms', s => s.loop.ticks.p90, ms, healthBy('tickP90')),
  sampled('max', 'event-loop delay: maximum, ms', s => s.loop.ticks.max, ms, healthBy('tickMax')),
  sampled('Busy', 'share of time with an active event loop', s => s.loop.utilization, share, alarmBy('loop')),
  sampled('In /s', 'messages from clients', s => (s.counts.in.messages * 1000) / s.interval, short),
  sampled('Out /s', 'messages to clients', s => (s.counts.out.messages * 1000) / s.interval, short),
  sampled('GC ms', 'pauses for garbage collection in the last second', gcPause, ms, alarmBy('gc')),
  sampled('Outbox', 'unsent bytes of all clients', ({ outbox }) => outbox.bytes, bytes),
]

/** @param {Session} session @returns {(workers: WorkerView[]) => void} */
function workersTable(session) {
  /**
   * @param {{title: string, text: string, yes: string}} question
   * @param {{type: 'gc' | 'restart' | 'reload', worker?: number | null}} command
   * @param {string} done
   */
  const send = async (question, command, done) => {
    if (!(await confirm(question))) return
    try {
      const text = await session.command(command)
      showResult('workers-result', text === '' ? done : `${done}: ${text}`)
    } catch (error) {
      // The request may be handled by the restarted worker, which may exit before it responds.
      const gone = command.type === 'restart' && !(error instanceof Refusal)
      showResult('workers-result', gone ? done : reason(error), gone)
    }
  }
  const collect = (/** @type {number | null} */ worker) => {
    const which = worker === null ? 'every worker' : `worker ${worker}`
    const title = `Collect garbage in ${which}?`
    const text = 'Its clients wait until it ends: a few hundred milliseconds with a large heap.'
    send({ title, text, yes: 'Collect' }, { type: 'gc', worker }, `garbage collection requested in ${which}`)
  }
  const restart = (/** @type {number | null} */ worker) => {
    const title = worker === null ? 'Restart all workers, one after another?' : `Restart worker ${worker}?`
    const text = 'A new process starts before the old one disconnects its clients, which then reconnect.'
    const done = worker === null ? 'the workers restart, one after another' : `worker ${worker} restarts`
    send({ title, text, yes: 'Restart' }, { type: 'restart', worker }, done)
  }
  const reload = () => {
    const text = 'The gateway reads its file and variables again. If they are invalid, nothing changes.'
    const question = { title: 'Reload the configuration?', text, yes: 'Reload' }
    send(question, { type: 'reload' }, 'configuration reloaded')
  }
  byId('gc-all').addEventListener('click', () => collect(null))
  byId('restart-all').addEventListener('click', () => restart(null))
  byId('reload').addEventListener('click', reload)
  const buttons = actions('buttons', (/** @type {WorkerView} */ { index }) => [
    smallButton('GC', `Collect garbage in worker ${index}`, () => collect(index)),
    smallButton('Restart', `Restart worker ${index}`, () => restart(index)),
  ])
  const table = new Table(byId('workers'), 'Workers', [...WORKERS, buttons], {
    key: ({ index }) => String(index),
  })
  return workers => {
    table.show(workers)
    const up = workers.filter(({ state }) => state === 'up').length
    byId('workers-count').textContent = `${up} of ${workers.length} up`
  }
}

// Events

const MAX_EVENTS = 100
const clock = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

/** @param {GatewayEvent[]} events oldest first; shown newest first */
function addEvents(events) {
  const list = byId('events')
  for (const { time, level, text } of events) {
    if (list.firstElementChild?.className === 'empty') list.firstElementChild.remove()
    const when = make('time', '', clock.format(time))
    when.setAttribute('datetime', new Date(time).toISOString())
    list.prepend(make('li', level, when, make('span', 'level', level), make('span', 'text', text)))
  }
  while (list.childElementCount > MAX_EVENTS) list.lastElementChild?.remove()
}

/** @param {GatewayEvent[]} events oldest first; replace those shown */
function resetEvents(events) {
  byId('events').replaceChildren()
  if (events.length === 0) byId('events').append(make('li', 'empty', 'No events yet.'))
  addEvents(events)
}

/** @param {Session} session */
export function liveView(session) {
  const charts = new LastMinutes()
  const [showVitals, showWorkers] = [vitals(), workersTable(session)]
  const [showLimits, showQueues] = [limitsTable(), queuesTables()]
  const show = (/** @type {Snapshot} */ snapshot) => {
    showVitals(snapshot)
    showWorkers(snapshot.workers)
    showLimits(snapshot)
    showQueues(snapshot)
  }
  return {
    draw: () => charts.draw(),
    /** @param {StatsMessage} message */
    onMessage(message) {
      if (message.type === 'hello') {
        charts.reset(message.history)
        resetEvents(message.events)
        const last = message.history.at(-1)
        if (last) show(last)
      } else if (message.type === 'snapshot') {
        const { snapshot } = message
        show(snapshot)
        charts.add(snapshot)
        addEvents(snapshot.events)
      }
    },
  }
}
