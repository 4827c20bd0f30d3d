import { MachineSampler } from '../../metrics/machine.js'

export const CHANNEL = 'demo:vitals'
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
 * Publishes the vital signs of the machine and of each worker once a second. With several nodes only the one with the
 * lowest id publishes, as the page shows one machine.
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
   * Responds to a survey of the publishing worker.
   * @param {{node: string}} params its node
   * @returns {{node: string, sample: WorkerSample | null}} null on other nodes and in the first second
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

  /** Called in one worker per node, which surveys the others. */
  start() {
    if (!this.#context.rules.resolve(CHANNEL)) {
      const line = 'demo.enabled: the page gets no vital signs without a namespace `demo`'
      return this.#context.log.warn({}, line)
    }
    this.#machine = new MachineSampler()
    this.#timer = setInterval(() => this.#publish(), INTERVAL_MS).unref()
  }

  stop() {
    clearInterval(this.#timer)
  }

  async #publish() {
    // A blocked worker delays the survey: skip this second.
    if (this.#busy) return
    this.#busy = true
    const { broker, clock, log, node } = this.#context
    try {
      /** @type {ReturnType<VitalsFeed['answer']>[]} */
      const answers = await broker.control.survey(OPERATION, { node })
      if (answers.some(answer => answer.node < node)) return
      const workers = answers.flatMap(({ sample }) => sample ?? [])
      workers.sort((a, b) => a.worker - b.worker)
      const { cpu, cores, memory, load } = /** @type {MachineSampler} */ (this.#machine).sample()
      this.#send({
        time: clock(),
        cpu: cpu && hundredths(cpu.user + cpu.system),
        cores,
        memory: { used: memory.used, total: memory.total },
        load,
        workers,
      })
    } catch (error) {
      log.debug({ err: error }, 'vital signs survey failed')
    } finally {
      this.#busy = false
    }
  }

  /** @param {object} vitals */
  #send(vitals) {
    const { broker, rules, log } = this.#context
    const namespace = rules.resolve(CHANNEL)
    if (!namespace) return
    const { options, historyOn, metaTtl } = namespace
    const history = {
      historySize: historyOn ? options.history_size : 0,
      historyTtl: options.history_ttl,
      metaTtl,
    }
    broker.pubsub.publish(CHANNEL, JSON.stringify(vitals), history, error => {
      if (error) log.debug({ err: error }, 'vital signs not published')
    })
  }
}
