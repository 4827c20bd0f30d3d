import { SentinelConnector } from 'ioredis'

/**
 * Asks sentinels where the master is, as ioredis does, but says why a sentinel did not answer, and prints nothing: one
 * that is out of reach is no news while another one answers.
 */
// @ts-expect-error: the methods are private there, and the only places where its connections are made
export class Sentinels extends SentinelConnector {
  /** @type {Error | null} */
  #reason = null

  /**
   * News of a failover ends the connection to the old master. Where there is none any more, they would end the search for the new one
   * instead, and for good: so they are listened to from the next connection on.
   * @param {any} eventEmitter
   */
  connect(eventEmitter) {
    // @ts-expect-error: private there
    this.failoverDetector?.cleanup()
    return super.connect(eventEmitter)
  }

  /**
   * @param {any} endpoint
   * @param {any} [options] of a connection on which it hears of failovers
   */
  connectToSentinel(endpoint, options) {
    // @ts-expect-error: private there
    const client = super.connectToSentinel(endpoint, options)
    client.on('error', (/** @type {Error} */ error) => {
      if (options === undefined) this.#reason = error
    })
    return client
  }

  /** @param {any} endpoint */
  async resolve(endpoint) {
    this.#reason = null
    try {
      // @ts-expect-error: private there
      return await super.resolve(endpoint)
    } catch (error) {
      throw this.#reason ?? error
    }
  }
}
