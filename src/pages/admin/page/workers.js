import { bytes, ms, share, short, UNKNOWN, whole } from '../../../base/format.js'
import { byId, make, smallButton } from '../../web/dom.js'
import { Table } from '../../web/table.js'
import { confirm } from './confirm.js'
import { alarmBy, healthBy } from './health.js'
import { Refusal, reason } from './session.js'

/** @import { WorkerSample, WorkerView } from '../../../metrics/schema.js' */
/** @import { Session } from './session.js' */
/** @import { TableColumn } from '../../web/table.js' */

/**
 * A column of figures that are empty without a sample.
 * @param {string} label @param {string} hint @param {(sample: WorkerSample) => number} value
 * @param {(value: number) => string} text @param {(value: number) => string} [tone]
 * @returns {TableColumn<WorkerView>}
 */
const figure = (label, hint, value, text, tone) => ({
  label,
  hint,
  value: ({ sample }) => (sample === null ? -1 : value(sample)),
  text: ({ sample }) => (sample === null ? UNKNOWN : text(value(sample))),
  tone: ({ sample }) => (sample === null || !tone ? '' : tone(value(sample))),
})

/** @param {WorkerSample} sample */
const gcPause = ({ gc }) => gc.minor.pause + gc.major.pause + gc.incremental.pause + gc.weak.pause

/** @param {WorkerView} view @returns {WorkerView['state'] | 'overloaded'} */
const stateOf = ({ state, sample }) => (state === 'up' && sample?.overload ? 'overloaded' : state)

/** @type {Readonly<Record<ReturnType<typeof stateOf>, string>>} */
const TONES = { up: 'good', overloaded: 'bad', starting: 'warn', silent: 'bad', down: 'bad' }

/** @type {TableColumn<WorkerView>[]} */
const COLUMNS = [
  { label: 'Worker', value: ({ index }) => index },
  {
    label: 'State',
    words: true,
    hint: 'silent: no sample for more than 1.5 s; overloaded: new connections are refused',
    value: stateOf,
    text: view =>
      [stateOf(view), (view.draining ?? 0) > 0 && 'being replaced', view.deaths > 0 && `${view.deaths}× died`]
        .filter(Boolean)
        .join(', '),
    tone: view => TONES[stateOf(view)],
  },
  figure('PID', 'process id', ({ pid }) => pid, String),
  figure('CPU', 'of one core', ({ cpu }) => cpu.user + cpu.system, share, alarmBy('cpu')),
  figure('RSS', 'resident memory', ({ memory }) => memory.rss, bytes),
  figure('Heap', 'JavaScript heap in use', ({ memory }) => memory.heap_used, bytes),
  figure('Clients', 'connected', ({ connections }) => connections.connected, whole),
  figure('Delay avg', 'event-loop delay: average, ms', ({ loop }) => loop.ticks.avg, ms, healthBy('tickAvg')),
  figure(
    'p90',
    'event-loop delay: 90th percentile, ms',
    ({ loop }) => loop.ticks.p90,
    ms,
    healthBy('tickP90'),
  ),
  figure('max', 'event-loop delay: maximum, ms', ({ loop }) => loop.ticks.max, ms, healthBy('tickMax')),
  figure(
    'Busy',
    'share of time in which the event loop was active',
    ({ loop }) => loop.utilization,
    share,
    alarmBy('loop'),
  ),
  figure('In /s', 'messages from clients', s => (s.counts.in.messages * 1000) / s.interval, short),
  figure('Out /s', 'messages to clients', s => (s.counts.out.messages * 1000) / s.interval, short),
  figure('GC ms', 'pauses for garbage collection in the last second', gcPause, ms, alarmBy('gc')),
  figure('Outbox', 'unsent bytes of all clients', ({ outbox }) => outbox.bytes, bytes),
]

/** The table of workers, with their actions. */
export class Workers {
  #session
  #table

  /** @param {Session} session */
  constructor(session) {
    this.#session = session
    const actions = {
      label: 'Actions',
      value: () => 0,
      node: (/** @type {WorkerView} */ { index }) => this.#actions(index),
    }
    this.#table = new Table(byId('workers'), 'Workers', [...COLUMNS, actions], {
      key: ({ index }) => String(index),
    })
    byId('gc-all').addEventListener('click', () => this.#collect(null))
    byId('reload').addEventListener('click', () => this.#reload())
    byId('restart-all').addEventListener('click', () => this.#restart(null))
  }

  /** @param {number} index */
  #actions(index) {
    return make(
      'div',
      'buttons',
      smallButton('GC', `Collect garbage in worker ${index}`, () => this.#collect(index)),
      smallButton('Restart', `Restart worker ${index}`, () => this.#restart(index)),
    )
  }

  /** @param {WorkerView[]} workers */
  show(workers) {
    this.#table.show(workers)
    const up = workers.filter(({ state }) => state === 'up').length
    byId('workers-count').textContent = `${up} of ${workers.length} up`
  }

  /** @param {number | null} index null: all */
  async #collect(index) {
    const which = index === null ? 'every worker' : `worker ${index}`
    const sure = await confirm({
      title: `Collect garbage in ${which}?`,
      text: 'Its clients wait while it lasts: with a large heap for a few hundred milliseconds.',
      yes: 'Collect',
    })
    if (sure) this.#send({ type: 'gc', worker: index }, `${which} was asked to collect garbage`)
  }

  /** @param {number | null} index null: all */
  async #restart(index) {
    const sure = await confirm({
      title: index === null ? 'Restart all workers, one after another?' : `Restart worker ${index}?`,
      text: 'A new process takes over before the old one lets its clients go. They come back by themselves.',
      yes: 'Restart',
    })
    const done = index === null ? 'the workers restart, one after another' : `worker ${index} restarts`
    if (sure) this.#send({ type: 'restart', worker: index }, done)
  }

  async #reload() {
    const sure = await confirm({
      title: 'Reload the configuration?',
      text: 'The gateway reads its file and variables again. With a fault in them nothing changes.',
      yes: 'Reload',
    })
    if (sure) this.#send({ type: 'reload' }, 'configuration reloaded')
  }

  /** @param {{type: 'gc' | 'restart' | 'reload', worker?: number | null}} command @param {string} done */
  async #send(command, done) {
    const { type } = command
    const result = byId('workers-result')
    try {
      const text = await this.#session.command(command)
      result.textContent = text === '' ? done : `${done}: ${text}`
      result.className = 'result'
    } catch (error) {
      // The worker that handles the request may be the restarted one and end before it answers.
      const gone = type === 'restart' && !(error instanceof Refusal)
      result.textContent = gone ? done : reason(error)
      result.className = gone ? 'result' : 'result bad'
    }
  }
}
