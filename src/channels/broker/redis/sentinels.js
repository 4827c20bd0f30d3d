import { SentinelConnector } from 'ioredis'

/** Sentinels publish `<master name> <old host> <old port> <new host> <new port>` here, each when it learns of a failover. */
const NEWS = '+switch-master'
const MAX_WATCHED = 10
/** Delay before a lost connection for news is retried, ms. */
const RETRY_MS = 1000
/** A connection for news is idle for months: time until TCP checks that the sentinel is still there, ms. */
const KEEP_ALIVE_MS = 15_000

/**
 * Finds the master like the connector of ioredis, but keeps the reason why a sentinel did not answer, and prints
 * nothing: one sentinel out of reach does not matter while another one answers.
 *
 * A master that is cut off from the sentinels may accept writes that will be lost, so its connection ends when a sentinel
 * announces another master. The detector of ioredis does not look at the names and addresses in this news: it would end
 * healthy connections when another master of these sentinels fails over, and when the last sentinel announces a master
 * that is in use already.
 */
// @ts-expect-error: connectToSentinel and resolve are private there, and the only places where its connections are made
export class Sentinels extends SentinelConnector {
  /** @type {Error | null} */
  #reason = null
  /** @type {import('node:net').Socket | null} to the master, maybe ended */
  #stream = null
  /** Host and port of the master, as sentinels write them. */
  #master = ''
  /** Announced failovers of this master. */
  #failovers = 0
  /** @type {Map<string, import('ioredis').Redis>} connections for news, by address of the sentinel */
  #watched = new Map()

  /** @param {any} eventEmitter */
  async connect(eventEmitter) {
    const stream = await super.connect(eventEmitter)
    this.#stream = stream
    this.#watch()
    return stream
  }

  disconnect() {
    super.disconnect()
    for (const client of this.#watched.values()) client.disconnect()
    this.#watched.clear()
  }

  /** Begins with the sentinel that has answered. */
  #watch() {
    const { sentinelIterator } = this
    sentinelIterator.reset(true)
    for (let next = sentinelIterator.next(); !next.done; next = sentinelIterator.next()) {
      const { host, port } = next.value
      const address = `${host} ${port}`
      if (this.#watched.has(address)) continue
      if (this.#watched.size === MAX_WATCHED) break
      const client = this.connectToSentinel(next.value, {
        retryStrategy: () => RETRY_MS,
        autoResubscribe: false,
        keepAlive: KEEP_ALIVE_MS,
      })
      // Lost with the connection, or late: then the next connection tries again.
      client.on('ready', () => client.subscribe(NEWS).catch(() => client.disconnect(true)))
      client.on('message', (/** @type {string} */ _topic, /** @type {string} */ text) => this.#onNews(text))
      this.#watched.set(address, client)
    }
    sentinelIterator.reset(false)
  }

  /** @param {string} text */
  #onNews(text) {
    const [name, , , host, port] = text.split(' ')
    if (name !== this.options.name) return
    this.#failovers++
    if (`${host} ${port}` !== this.#master)
      this.#stream?.destroy(new Error(`the sentinels have replaced the master by ${host}:${port}`))
  }

  /** @param {any} endpoint @param {any} [options] of a connection for news */
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
      for (;;) {
        const failovers = this.#failovers
        // @ts-expect-error: private there
        const address = await super.resolve(endpoint)
        // Otherwise it may have answered before it knew of a failover.
        if (failovers !== this.#failovers) continue
        this.#master = address === null ? '' : `${address.host} ${address.port}`
        return address
      }
    } catch (error) {
      throw this.#reason ?? error
    }
  }
}
