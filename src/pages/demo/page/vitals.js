import { Chart, roundCeiling } from './chart.js'
import { byId, canvasById, gigabytes, make, megabytes, milliseconds, plural } from './dom.js'

const CHANNEL = 'demo:vitals'
const HISTORY = 50

/**
 * @typedef {object} Vitals the publication of src/pages/demo/feed.js
 * @property {number} time ms
 * @property {number | null} cpu 0-1
 * @property {number} cores
 * @property {{used: number, total: number}} memory bytes
 * @property {number[] | null} load
 * @property {Worker[]} workers
 *
 * @typedef {object} Worker
 * @property {number} worker
 * @property {number} pid
 * @property {number} connections
 * @property {number} messages a second
 * @property {number} memory bytes
 * @property {{mean: number, p90: number, max: number}} delay ms
 */

/**
 * Anybody may publish to this channel in the development profile, so publications are validated.
 * @param {any} data @returns {data is Vitals}
 */
function isVitals(data) {
  return (
    Number.isFinite(data?.time) &&
    Number.isFinite(data.memory?.used) &&
    Number.isFinite(data.memory?.total) &&
    Array.isArray(data.workers) &&
    data.workers.length > 0 &&
    data.workers.every(
      (/** @type {any} */ worker) =>
        Number.isInteger(worker?.worker) &&
        [worker.pid, worker.connections, worker.messages, worker.memory, worker.delay?.max].every(
          Number.isFinite,
        ),
    )
  )
}

/** The charts and the table of workers. */
export class VitalsPanel {
  #total = 1
  #newest = 0
  /** @type {Map<number, number>} worker -> process id */
  #pids = new Map()
  #cpu = new Chart(canvasById('cpu-chart'), {
    ceiling: () => 100,
    label: value => `CPU, last minute, now ${Math.round(value)} percent`,
  })
  #delay = new Chart(canvasById('delay-chart'), {
    ceiling: roundCeiling(5),
    label: value => `Longest event-loop delay, last minute, now ${milliseconds(value)} milliseconds`,
  })
  #messages = new Chart(canvasById('messages-chart'), {
    ceiling: roundCeiling(10),
    label: value => `Messages delivered, last minute, now ${value} a second`,
  })
  #memory = new Chart(canvasById('memory-chart'), {
    ceiling: () => this.#total,
    label: value => `Memory in use, last minute, now ${gigabytes(value)} GB`,
  })

  /** @param {import('./connection.js').Connection} connection @param {import('./recovery.js').Recovery} recovery */
  constructor(connection, recovery) {
    // Samples are similar: a delta is a fraction of the size. Without deltas in the gateway, they arrive whole.
    const channel = connection.channel(CHANNEL, { delta: 'fossil' })
    recovery.watch(channel, (data, recovered) => this.#receive(data, recovered))
    channel.on('subscribed', async ({ recovered }) => {
      if (recovered) return
      // A new page shows the previous minute, too.
      const publications = await channel.last(HISTORY).catch(() => [])
      for (const { data } of publications) this.#receive(data, false)
    })
  }

  /** @param {any} data @param {boolean} recovered */
  #receive(data, recovered) {
    if (!isVitals(data)) return
    const { time, cpu, cores, memory, load, workers } = data
    const longest = Math.max(...workers.map(({ delay }) => delay.max))
    const mean = workers.reduce((sum, { delay }) => sum + delay.mean, 0) / workers.length
    const messages = workers.reduce((sum, worker) => sum + worker.messages, 0)
    this.#total = memory.total
    if (typeof cpu === 'number') this.#cpu.add({ time, value: cpu * 100, recovered })
    this.#delay.add({ time, value: longest, second: mean, recovered })
    this.#messages.add({ time, value: messages, recovered })
    this.#memory.add({ time, value: memory.used, recovered })
    if (time <= this.#newest) return
    this.#newest = time

    const connections = workers.reduce((sum, worker) => sum + worker.connections, 0)
    write('cpu-value', typeof cpu === 'number' ? String(Math.round(cpu * 100)) : '–')
    write(
      'cpu-note',
      [plural(cores, 'core'), load && `load ${load[0].toFixed(2)}`].filter(Boolean).join(' · '),
    )
    write('delay-value', milliseconds(longest))
    write('delay-note', `longest · ${milliseconds(mean)} ms on average`)
    write('messages-value', messages.toLocaleString('en'))
    write('messages-note', `delivered to ${plural(connections, 'connection')}`)
    write('memory-value', gigabytes(memory.used))
    const own = workers.reduce((sum, worker) => sum + worker.memory, 0)
    write('memory-note', `of ${gigabytes(memory.total)} · workers ${megabytes(own)}`)
    this.#list(workers, longest)
  }

  /** @param {Worker[]} workers @param {number} longest ms */
  #list(workers, longest) {
    const top = roundCeiling(5)(longest)
    byId('workers').replaceChildren(
      ...workers.map(({ worker, pid, connections, messages, memory, delay }) => {
        const before = this.#pids.get(worker)
        this.#pids.set(worker, pid)
        const bar = make('b')
        bar.style.setProperty('--share', String(delay.max / top))
        return make(
          'tr',
          before !== undefined && before !== pid ? 'fresh' : '',
          make('td', '', String(worker)),
          make('td', '', String(pid)),
          make('td', '', connections.toLocaleString('en')),
          make('td', '', messages.toLocaleString('en')),
          make('td', '', megabytes(memory)),
          make(
            'td',
            'wide',
            make('div', 'meter', make('i', '', bar), make('span', '', `${milliseconds(delay.max)} ms`)),
          ),
        )
      }),
    )
    const hint = make('code', '', `kill -9 ${workers[workers.length - 1].pid}`)
    byId('kill-hint').replaceChildren('Try ', hint, ': it is replaced, and nothing is missed.')
  }
}

/** @param {string} id @param {string} text */
function write(id, text) {
  byId(id).textContent = text
}
