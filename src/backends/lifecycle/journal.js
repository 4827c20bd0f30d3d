// Who is connected to the workers of this node: what the primary must know to log the disconnects of a dead worker.

/** Memory of a client and of a subscription besides their texts, bytes: rounded up from what V8 takes. */
const CLIENT_OVERHEAD = 170
const CHANNEL_OVERHEAD = 80

/** A connected client. */
export class JournalClient {
  /** @type {Set<string> | string | null} most clients have one: a Set only for more */
  channels = null
  /** Whether Redis has it, or may have it. */
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

  /** @returns {string[]} */
  get channelList() {
    const { channels } = this
    return channels === null ? [] : typeof channels === 'string' ? [channels] : [...channels]
  }

  /** @returns {string} JSON */
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

/** The clients of all workers, within a limit of bytes. */
export class Journal {
  clients = 0
  bytes = 0
  /** Clients and subscriptions that found it full, since the start. */
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

/** The clients of one worker process. */
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

  /** @param {string} id @returns {JournalClient | undefined} what was known of it */
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

  /** @returns {IterableIterator<[string, JournalClient]>} clients may be removed meanwhile */
  entries() {
    return this.#clients.entries()
  }
}
