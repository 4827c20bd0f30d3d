import { Deployment, nameOf } from './deployment.js'
import { prefixedOutput } from './report.js'
import { SCENARIOS } from './scenarios.js'

/** @typedef {import('./deployment.js').Kind} Kind */

/** One scenario against one fresh deployment. */
export class Trial {
  /** @type {Deployment | null} */
  #deployment = null

  /**
   * @param {string} scenario @param {Kind} kind @param {import('./scenarios.js').Sizes} sizes
   * @param {import('./deployment.js').DeploymentOptions} options
   * @param {import('./bench.js').Io} io
   * @param {string} [title] of its output
   * @returns {Promise<import('./report.js').Result>} rejects when the server does not start, or ends meanwhile
   */
  async run(scenario, kind, sizes, options, io, title = `${scenario} ${nameOf(kind, options)}`) {
    const show = prefixedOutput(io, title)
    show.progress('the server starts')
    const deployment = new Deployment()
    this.#deployment = deployment
    try {
      await deployment.start(kind, { ...options, subscriptions: sizes.subscriptions ?? 1, env: io.env })
      const result = await SCENARIOS[scenario].run(deployment, sizes, show)
      if (!deployment.whole) throw new Error(`${title}: a process of the server ended during the run`)
      return result
    } finally {
      await deployment.stop()
      this.#deployment = null
      io.progress('')
    }
  }

  /** Stops the current deployment, if there is one. */
  async stop() {
    await this.#deployment?.stop()
  }
}
