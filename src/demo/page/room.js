import { byId, inputById, make } from './dom.js'
import { readPerson } from './people.js'

const CHANNEL = 'demo:room'
const HISTORY = 50
const MAX_LINES = 200
const MAX_TEXT = 500

const clock = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit' })

/** A small chat with presence. */
export class Room {
  #log = byId('room-log')
  #self
  #channel
  #own = ''
  /** @type {Set<string>} clients in the room */
  #present = new Set()
  /** @type {(client: string) => void} */
  #onLeave

  /**
   * @param {import('./connection.js').Connection} connection @param {import('./recovery.js').Recovery} recovery
   * @param {import('./people.js').Self} self @param {(client: string) => void} onLeave
   */
  constructor(connection, recovery, self, onLeave) {
    this.#self = self
    this.#onLeave = onLeave
    const channel = connection.channel(CHANNEL)
    this.#channel = channel
    recovery.watch(channel, (_, recovered, publication) => this.#message(publication, recovered))
    connection.on('connected', ({ client: id }) => {
      this.#own = id
    })
    channel.on('subscribed', ({ recovered }) => this.#arrive(recovered))
    channel.on('subscribing', () => this.#away())
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

  /** @param {boolean} recovered */
  async #arrive(recovered) {
    try {
      const [{ clients }, publications] = await Promise.all([
        this.#channel.presence(),
        recovered ? [] : this.#channel.last(HISTORY),
      ])
      this.#people(Object.keys(clients))
      if (recovered) return
      this.#log.replaceChildren()
      for (const publication of publications) this.#message(publication, false)
      if (publications.length === 0) this.#note('Nobody has said anything yet.', 'empty')
    } catch {
      // The connection was lost in between; the next `subscribed` repeats this.
    }
  }

  #away() {
    for (const id of ['room-count', 'sky-count']) byId(id).textContent = '–'
  }

  /** @param {Iterable<string>} clients */
  #people(clients) {
    this.#present = new Set(clients)
    this.#count()
  }

  #count() {
    for (const id of ['room-count', 'sky-count']) byId(id).textContent = String(this.#present.size)
  }

  /** @param {string} client */
  #joined(client) {
    if (this.#present.has(client)) return
    this.#present.add(client)
    this.#count()
    if (client !== this.#own) this.#note('A tab joined')
  }

  /** @param {string} client */
  #left(client) {
    this.#onLeave(client)
    if (!this.#present.delete(client)) return
    this.#count()
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
    if (Number.isFinite(data?.time)) line.append(make('span', 'when', clock.format(data.time)))
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
    // Keep the position of a reader who has scrolled up.
    const following = log.scrollHeight - log.scrollTop - log.clientHeight < 60
    if (log.firstElementChild?.className === 'empty') log.firstElementChild.remove()
    log.append(line)
    while (log.childElementCount > MAX_LINES) log.firstElementChild?.remove()
    if (following) log.scrollTop = log.scrollHeight
  }
}
