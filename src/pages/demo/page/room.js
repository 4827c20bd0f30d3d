import { byId, inputById, make } from './dom.js'
import { readPerson } from './people.js'

const CHANNEL = 'demo:room'
/** Messages shown at first. */
const HISTORY = 50
/** Messages and notes on the page. */
const MAX_LINES = 200
/** Characters of a message: programs may publish longer ones. */
const MAX_TEXT = 500
/** Pixels from the end of the log within which it scrolls along. */
const NEAR_END = 60
/** Elements that show the number of clients. */
const COUNTS = ['room-count', 'sky-count']

const timeFormat = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit' })

/** The chat, with presence. */
export class Room {
  #log = byId('room-log')
  #self
  #channel
  /** The client id of this tab. */
  #ownClient = ''
  /** @type {Set<string>} client ids */
  #present = new Set()
  /** @type {(client: string) => void} */
  #onLeave

  /**
   * @param {import('./connection.js').Connection} connection @param {import('./recovery.js').Recovery} recovery
   * @param {import('./people.js').Self} self @param {(client: string) => void} onLeave a client has left
   */
  constructor(connection, recovery, self, onLeave) {
    this.#self = self
    this.#onLeave = onLeave
    const channel = connection.channel(CHANNEL)
    this.#channel = channel
    recovery.watch(channel, (_, recovered, publication) => this.#message(publication, recovered))
    connection.on('connected', ({ client: id }) => {
      this.#ownClient = id
    })
    channel.on('subscribed', ({ recovered }) => this.#subscribed(recovered))
    channel.on('subscribing', () => this.#showCount('–'))
    channel.on('join', ({ info }) => this.#joined(info.client))
    channel.on('leave', ({ info }) => this.#left(info.client))
    this.#listen()
  }

  #listen() {
    const form = /** @type {HTMLFormElement} */ (byId('room-form'))
    const name = inputById('room-name')
    const text = inputById('room-text')
    name.value = this.#self.name
    name.addEventListener('change', () => {
      this.#self.rename(name.value)
      name.value = this.#self.name
    })
    form.addEventListener('submit', event => {
      event.preventDefault()
      const said = text.value.trim()
      if (said) this.#say(said, text)
    })
  }

  /** @param {string} said @param {HTMLInputElement} field cleared when sent */
  async #say(said, field) {
    const { name, hue } = this.#self
    field.value = ''
    try {
      await this.#channel.publish({ text: said, name, hue, time: Date.now() })
    } catch (error) {
      field.value = said
      this.#note(`Not sent: ${/** @type {any} */ (error).message ?? 'no connection'}`)
    }
  }

  /** Shows presence, and history unless it was recovered. @param {boolean} recovered */
  async #subscribed(recovered) {
    try {
      const [{ clients }, publications] = await Promise.all([
        this.#channel.presence(),
        recovered ? [] : this.#channel.last(HISTORY),
      ])
      this.#present = new Set(Object.keys(clients))
      this.#showPresent()
      if (recovered) return
      this.#log.replaceChildren()
      for (const publication of publications) this.#message(publication, false)
      if (publications.length === 0) this.#note('Nobody has said anything yet.', 'empty')
    } catch {
      // The connection was lost in between; the next `subscribed` repeats this.
    }
  }

  #showPresent() {
    this.#showCount(String(this.#present.size))
  }

  /** @param {string} count */
  #showCount(count) {
    for (const id of COUNTS) byId(id).textContent = count
  }

  /** @param {string} client */
  #joined(client) {
    if (this.#present.has(client)) return
    this.#present.add(client)
    this.#showPresent()
    if (client !== this.#ownClient) this.#note('A tab joined')
  }

  /** @param {string} client */
  #left(client) {
    this.#onLeave(client)
    if (!this.#present.delete(client)) return
    this.#showPresent()
    this.#note('A tab left')
  }

  /** @param {{data: any, info?: import('centrifuge').ClientInfo}} publication @param {boolean} recovered */
  #message({ data, info }, recovered) {
    const line = make('li', 'message')
    if (info) {
      const { name, hue } = readPerson(data)
      const who = make('span', 'who', name)
      who.style.setProperty('--hue', String(hue))
      line.append(who)
    } else line.append(make('span', 'who api', 'server API'))
    const text = typeof data?.text === 'string' ? data.text : JSON.stringify(data)
    line.append(text.slice(0, MAX_TEXT))
    if (Number.isFinite(data?.time)) line.append(make('span', 'when', timeFormat.format(data.time)))
    if (recovered) line.append(make('span', 'tag', 'recovered'))
    this.#append(line)
  }

  /** @param {string} text @param {string} [className] */
  #note(text, className = 'event') {
    this.#append(make('li', className, text))
  }

  /** @param {HTMLElement} line */
  #append(line) {
    const log = this.#log
    // Keeps the position of a reader who has scrolled up.
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END
    if (log.firstElementChild?.className === 'empty') log.firstElementChild.remove()
    log.append(line)
    while (log.childElementCount > MAX_LINES) log.firstElementChild?.remove()
    if (atEnd) log.scrollTop = log.scrollHeight
  }
}
