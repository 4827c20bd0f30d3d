import { MachineSampler } from '../../metrics/machine.js'

export const CHANNEL = 'demo:vitals'
/** Survey operation. */
export const OPERATION = 'demo.vitals'
const INTERVAL_MS = 1000

/**
 * @typedef {object} WorkerSample
 * @property {number} worker index
 * @property {number} pid
 * @property {number} connections
 * @property {number} messages deliveries a second
 * @property {number} memory resident, bytes
 * @property {{mean: number, p90: number, max: number}} delay event-loop delay, ms
 */

/** @param {number} value */
const hundredths = value => Math.round(value * 100) / 100

/**
 * Publishes the vital signs of the machine and of each worker once a second. Of several nodes only the one with the
 * lowest id publishes, so that the page shows one machine.
 */
export class VitalsFeed {
  #context
  #sampler
  /** @type {MachineSampler | undefined} in the publishing worker */
  #machine
  #busy = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {import('../../clients/session/context.js').WorkerContext} context
   * @param {{last: import('../../metrics/schema.js').WorkerSample | null}} sampler of this worker
   */
  constructor(context, sampler) {
    this.#context = context
    this.#sampler = sampler
  }

  /**
   * Handles a survey of the publishing worker.
   * @param {{node: string}} params its node
   * @returns {{node: string, sample: WorkerSample | null}} null for another node, and in the first second
   */
  answer({ node }) {
    const own = this.#context.node
    return { node: own, sample: node === own ? this.#sample() : null }
  }

  /** @returns {WorkerSample | null} */
  #sample() {
    const { last } = this.#sampler
    if (last === null) return null
    const { ticks } = last.loop
    return {
      worker: last.index,
      pid: last.pid,
      connections: last.connections.connected,
      messages: Math.round((last.counts.deliveries * 1000) / last.interval),
      memory: last.memory.rss,
      delay: { mean: hundredths(ticks.avg), p90: hundredths(ticks.p90), max: hundredths(ticks.max) },
    }
  }

  /** To be called in one worker of each node; it surveys the others. */
  start() {
    if (!this.#context.rules.resolve(CHANNEL)) {
      const line = 'demo.enabled: channel.namespaces has no `demo`, so the page gets no vital signs'
      return this.#context.log.warn({}, line)
    }
    this.#machine = new MachineSampler()
    this.#timer = setInterval(() => this.#publish(), INTERVAL_MS).unref()
  }

  /** Another worker publishes from now on. */
  stop() {
    clearInterval(this.#timer)
  }

  #machineSigns() {
    const { cpu, cores, memory, load } = /** @type {MachineSampler} */ (this.#machine).sample()
    return {
      cpu: cpu && hundredths(cpu.user + cpu.system),
      cores,
      memory: { used: memory.used, total: memory.total },
      load,
    }
  }

  async #publish() {
    // A hanging worker delays the survey: skip this second.
    if (this.#busy) return
    this.#busy = true
    const { broker, clock, log, node } = this.#context
    try {
      /** @type {ReturnType<VitalsFeed['answer']>[]} */
      const answers = await broker.control.survey(OPERATION, { node })
      if (answers.some(answer => answer.node < node)) return
      const workers = answers.flatMap(({ sample }) => sample ?? [])
      workers.sort((a, b) => a.worker - b.worker)
      this.#send(JSON.stringify({ time: clock(), ...this.#machineSigns(), workers }))
    } catch (error) {
      log.debug({ err: error }, 'vital signs survey failed')
    } finally {
      this.#busy = false
    }
  }

  /** @param {string} data */
  #send(data) {
    const { broker, rules, log } = this.#context
    const namespace = rules.resolve(CHANNEL)
    if (!namespace) return
    const { options, historyOn, metaTtl } = namespace
    const history = {
      historySize: historyOn ? options.history_size : 0,
      historyTtl: options.history_ttl,
      metaTtl,
    }
    broker.pubsub.publish(CHANNEL, data, history, error => {
      if (error) log.debug({ err: error }, 'vital signs not published')
    })
  }
}
