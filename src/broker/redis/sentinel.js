import { SentinelConnector } from 'ioredis'

/**
 * Asks sentinels where the master is, as ioredis does. A sentinel that is out of reach is no news while another one
 * answers; ioredis would print each failure of the connections on which it hears of failovers.
 */
// @ts-expect-error: the method is private there, and the only place where its connections are made
export class Sentinels extends SentinelConnector {
  /**
   * @param {any} endpoint
   * @param {any} options
   */
  connectToSentinel(endpoint, options) {
    // @ts-expect-error: private there
    const client = super.connectToSentinel(endpoint, options)
    client.on('error', () => {})
    return client
  }
}
