// Connected clients of this node's workers: the primary logs the disconnects of a dead worker from it.

/** Bytes of a client and of a subscription, excluding their strings: V8's sizes, rounded up. */
const CLIENT_OVERHEAD = 170
const CHANNEL_OVERHEAD = 80

export class JournalClient {
  /** A Set only for several channels: most clients have one. @type {Set<string> | string | null} */
  channels = null
  stored = false

  /**
   * @param {number} worker index @param {number} time of its connect, unix ms @param {string} user
   * @param {string} transport
   */
  constructor(worker, time, user, transport) {
    this.worker = worker
    this.time = time
    this.user = user
    this.transport = transport
  }

  get channelList() {
    const { channels } = this
    return channels === null ? [] : typeof channels === 'string' ? [channels] : [...channels]
  }

  toText() {
    return JSON.stringify([this.worker, this.time, this.user, this.transport, ...this.channelList])
  }

  /** @param {string} text from `toText` */
  static fromText(text) {
    const [worker, time, user, transport, ...channels] = JSON.parse(text)
    const client = new JournalClient(worker, time, user, transport)
    client.channels = new Set(channels)
    return client
  }
}

export class Journal {
  clients = 0
  bytes = 0
  /** Clients and subscriptions omitted because the journal was full. */
  refused = 0
  #maxBytes

  /** @param {number} maxBytes */
  constructor(maxBytes) {
    this.#maxBytes = maxBytes
  }

  /** @param {number} size bytes @returns {boolean} false: it is full */
  reserve(size) {
    if (this.bytes + size > this.#maxBytes) {
      this.refused++
      return false
    }
    this.bytes += size
    return true
  }
}

export class WorkerJournal {
  /** @type {Map<string, JournalClient>} by client id */
  #clients = new Map()
  #journal

  /** @param {Journal} journal */
  constructor(journal) {
    this.#journal = journal
  }

  /** @param {string} id @param {JournalClient} client @returns {boolean} false: the journal is full */
  add(id, client) {
    if (!this.#journal.reserve(CLIENT_OVERHEAD + client.user.length)) return false
    this.#journal.clients++
    this.#clients.set(id, client)
    return true
  }

  /** @param {string} id */
  get(id) {
    return this.#clients.get(id)
  }

  /** @param {JournalClient} client @param {string} channel */
  subscribe(client, channel) {
    const { channels } = client
    if (channels === channel || (channels instanceof Set && channels.has(channel))) return
    if (!this.#journal.reserve(CHANNEL_OVERHEAD + channel.length)) return
    if (channels === null) client.channels = channel
    else if (typeof channels === 'string') client.channels = new Set([channels, channel])
    else channels.add(channel)
  }

  /** @param {JournalClient} client @param {string} channel */
  unsubscribe(client, channel) {
    const { channels } = client
    if (channels === channel) client.channels = null
    else if (!(channels instanceof Set && channels.delete(channel))) return
    this.#journal.bytes -= CHANNEL_OVERHEAD + channel.length
  }

  /** @param {string} id @returns {JournalClient | undefined} its entry */
  remove(id) {
    const client = this.#clients.get(id)
    if (client === undefined) return undefined
    this.#clients.delete(id)
    const journal = this.#journal
    journal.clients--
    journal.bytes -= CLIENT_OVERHEAD + client.user.length
    for (const channel of client.channelList) journal.bytes -= CHANNEL_OVERHEAD + channel.length
    return client
  }

  /** @returns {IterableIterator<[string, JournalClient]>} allows removal during iteration */
  entries() {
    return this.#clients.entries()
  }
}
