import { maxConnectionsOf, nameOf } from './deployment.js'
import { medians, printResult, ratios, table } from './report.js'
import { SCENARIOS } from './scenarios.js'
import { Trial } from './trial.js'

export { HELP, parseOptions } from './options.js'

/**
 * @typedef {import('./options.js').Options} Options
 * @typedef {import('./deployment.js').Kind} Kind
 * @typedef {object} Io
 * @property {Record<string, string | undefined>} env
 * @property {(text: string) => void} print to standard output
 * @property {(text: string) => void} progress a line that replaces the last one; '' clears it
 * @property {(text: string) => void} warning a line that stays
 */

export class Run {
  #options
  #io
  #trial = new Trial()

  /** @param {Options} options @param {Io} io */
  constructor(options, io) {
    this.#options = options
    this.#io = io
  }

  async run() {
    const { scenarios, server, against } = this.#options
    for (const scenario of scenarios) {
      for (const kind of [server, ...against]) this.#check(scenario, kind)
    }
    for (const scenario of scenarios) await this.#scenario(scenario)
  }

  /** Stops the current deployment, if there is one. */
  async stop() {
    await this.#trial.stop()
  }

  /** @param {string} scenario */
  #sizes(scenario) {
    const { sizes } = SCENARIOS[scenario]
    const { sizes: asked, nodes } = this.#options
    // With fewer clients than default channels, each client has a channel.
    const channels = Math.min(sizes.channels, asked.conns ?? sizes.conns)
    const whole = { ...sizes, channels, ...asked }
    // At least one loader per node, for controls too, so that all have the same load generator.
    return { ...whole, loaders: Math.max(whole.loaders, nodes) }
  }

  /** @param {string} scenario @param {Kind} kind */
  #check(scenario, kind) {
    const { conns, channels } = this.#sizes(scenario)
    const capacity = maxConnectionsOf(kind, this.#options)
    if (conns > capacity) {
      const hint = kind === 'halley' ? 'ask for more --workers or fewer --conns' : 'ask for fewer --conns'
      throw new Error(
        `${scenario}: the limit of open files leaves ${kind} room for ${capacity} clients, not ${conns}; ${hint}`,
      )
    }
    if (channels > conns) throw new Error(`${scenario}: ${channels} channels need as many --conns`)
  }

  /** @param {string} scenario */
  async #scenario(scenario) {
    const { server, against, runs } = this.#options
    const kinds = [server, ...against]
    /** @type {import('./report.js').Result[][]} by kind */
    const results = kinds.map(() => [])
    for (let run = 1; run <= runs; run++) {
      for (const [i, kind] of kinds.entries()) results[i].push(await this.#once(scenario, kind, run))
    }
    if (runs > 1 || against.length > 0) this.#compare(scenario, kinds, results)
  }

  /** @param {string} scenario @param {Kind} kind @param {number} run */
  async #once(scenario, kind, run) {
    const { runs, json } = this.#options
    const name = nameOf(kind, this.#options)
    const column = `${name}${runs > 1 ? ` ${run}/${runs}` : ''}`
    const sizes = this.#sizes(scenario)
    const result = await this.#trial.run(
      scenario,
      kind,
      sizes,
      this.#options,
      this.#io,
      `${scenario} ${column}`,
    )
    printResult(this.#io, json, { scenario, server: name, run }, column, result)
    return result
  }

  /** @param {string} scenario @param {Kind[]} kinds @param {import('./report.js').Result[][]} results */
  #compare(scenario, kinds, results) {
    const { json } = this.#options
    const { print } = this.#io
    const middle = results.map(medians)
    const names = kinds.map(kind => nameOf(kind, this.#options))
    const comparisons = names.slice(1).map((name, i) => ({ name, result: ratios(middle[0], middle[i + 1]) }))
    if (json) {
      for (const [i, server] of names.entries())
        print(`${JSON.stringify({ scenario, server, median_of: results[i].length, ...middle[i] })}\n`)
      for (const { name, result } of comparisons)
        print(`${JSON.stringify({ scenario, server: names[0], ratio_to: name, ...result })}\n`)
      return
    }
    const columns = [
      ...names.map((name, i) => ({ name, result: middle[i] })),
      ...comparisons.map(({ name, result }) => ({ name: `ratio to ${name}`, result })),
    ]
    print(`${table(`${scenario}, medians of ${results[0].length}`, columns)}\n`)
  }
}
