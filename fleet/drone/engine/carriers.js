import { HttpWire } from '../transport/http.js'
import { Target } from '../transport/target.js'
import { CLOSED, OPEN } from '../transport/wire.js'

/** @typedef {import('./lane.js').Fault} Fault */
/** @typedef {import('../transport/dialer.js').Connection} Connection */
/** @typedef {import('../transport/dialer.js').Dialer} Dialer */

/**
 * Told once for each batch: what each publication was answered, or why there are no answers.
 * @typedef {(faults: Fault[] | null, reason: string) => void} Done
 */

/** s until a batch has failed. */
const PATIENCE = 10

/** Publishes over the server API: one keep-alive connection, to the next target after each failure. */
export class ApiCarrier {
  #targets
  #turn
  #key
  /** @type {ApiWire | null} */
  #wire = null

  /**
   * @param {Dialer} dialer has looked at the targets
   * @param {string[]} targets base URLs
   * @param {number} turn which one is the first
   * @param {string} key
   */
  constructor(dialer, targets, turn, key) {
    this.#targets = targets.map(url => new Target(dialer, url, null, false))
    this.#turn = turn
    this.#key = key
  }

  /**
   * @param {string[]} publications JSON of publish requests
   * @param {Done} done
   */
  send(publications, done) {
    const target = this.#targets[this.#turn % this.#targets.length]
    const body = Buffer.from(`{"commands":[${publications.map(text => `{"publish":${text}}`).join()}]}`)
    const request = Buffer.from(
      `POST ${target.prefix}/api/batch HTTP/1.1\r\nHost: ${target.host}\r\nX-API-Key: ${this.#key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    if (this.#wire?.state !== OPEN) this.#wire = new ApiWire(target)
    this.#wire.ask(request, (text, reason) => {
      let faults = null
      try {
        faults = JSON.parse(text).replies.map((/** @type {any} */ reply) => reply.error)
      } catch {}
      if (faults?.length === publications.length) return done(faults, '')
      this.#turn++
      this.close()
      done(null, reason || 'no answer to each command')
    })
  }

  close() {
    this.#wire?.end('closed')
  }
}

/** One request at a time. */
class ApiWire extends HttpWire {
  /** @type {((text: string, reason: string) => void) | null} */
  #done = null
  #request = new Uint8Array(0)
  /** @type {Buffer[]} */
  #parts = []

  /** @param {Uint8Array<ArrayBuffer>} request @param {(text: string, reason: string) => void} done */
  ask(request, done) {
    this.#done = done
    this.#request = request
    this.target.dialer.watch(this, PATIENCE)
    if (this.state === OPEN) this.write(request)
    else this.open()
  }

  /** @override */
  opened() {
    this.state = OPEN
    this.write(this.#request)
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  body(buffer, start, end) {
    this.#parts.push(Buffer.from(buffer.subarray(start, end)))
  }

  /** @override */
  done() {
    this.target.dialer.unwatch(this)
    if (!this.kept) this.end('closed')
    this.#tell(`${Buffer.concat(this.#parts)}`, this.status === 200 ? '' : `HTTP ${this.status}`)
  }

  /** @override */
  gone() {
    this.state = CLOSED
    this.target.dialer.unwatch(this)
    this.#tell('', this.reason || 'closed by target')
  }

  /** @param {string} text @param {string} reason */
  #tell(text, reason) {
    const done = this.#done
    this.#done = null
    this.#parts = []
    done?.(text, reason)
  }
}

/** Publishes with the commands of a client. It is told what its connection receives, and that it was closed. */
export class ClientCarrier {
  #dial
  #learn
  /** @type {Connection | null} */
  #connection = null
  #ready = false
  #pong = false
  #text = ''
  /** @type {Fault[]} */
  #faults = []
  #left = 0
  /** @type {Done | null} */
  #done = null
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {() => Connection} dial
   * @param {(time: number) => void} learn the gateway's time
   */
  constructor(dial, learn) {
    this.#dial = dial
    this.#learn = learn
  }

  open() {
    this.#connection ??= this.#dial()
  }

  /**
   * @param {string[]} publications
   * @param {Done} done
   */
  send(publications, done) {
    this.#done = done
    this.#faults = publications.map(() => undefined)
    this.#left = publications.length
    this.#text = publications.map((text, n) => `{"id":${n + 2},"publish":${text}}`).join('\n')
    this.#timer = setTimeout(() => this.#fail('timeout'), PATIENCE * 1000)
    this.open()
    if (this.#ready) this.#connection?.send(this.#text)
  }

  /** @param {any} reply */
  message(reply) {
    if (reply.id > 1) {
      this.#faults[reply.id - 2] = reply.error
      if (--this.#left === 0) this.#tell(this.#faults, '')
    } else if (reply.connect) {
      this.#ready = true
      this.#pong = reply.connect.pong
      if (reply.connect.time) this.#learn(reply.connect.time)
      if (this.#done) this.#connection?.send(this.#text)
    } else if (reply.error) this.#fail(`connect: ${reply.error.code}`)
    else if (!reply.push && this.#pong) this.#connection?.send('{}')
  }

  /** @param {Fault[] | null} faults @param {string} reason */
  #tell(faults, reason) {
    const done = this.#done
    this.#done = null
    clearTimeout(this.#timer)
    done?.(faults, reason)
  }

  /** @param {string} reason */
  #fail(reason) {
    this.close()
    this.#tell(null, reason)
  }

  /** @param {Connection} connection @param {string} reason */
  closed(connection, reason) {
    if (connection === this.#connection) this.#fail(reason)
  }

  close() {
    clearTimeout(this.#timer)
    this.#connection?.close()
    this.#connection = null
    this.#ready = false
  }
}
