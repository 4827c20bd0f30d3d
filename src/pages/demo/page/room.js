import { byId, inputById, make, onSubmit } from '../../web/dom.js'

const CHANNEL = 'demo:room'
/** Messages shown initially. */
const HISTORY = 50
/** Messages and notes on the page. */
const MAX_LINES = 200
/** Characters of a message: programs may publish longer ones. */
const MAX_TEXT = 500
/** Maximum distance from the end for auto-scroll, pixels. */
const NEAR_END = 60
const NAMES =
  'Encke Biela Faye Donati Tempel Borrelly Wild Holmes Hyakutake Lovejoy McNaught Kohoutek Bennett Ikeya Seki Olbers Tuttle Wirtanen Giacobini Brorsen Austin Levy Kowal Machholz'.split(
    ' ',
  )
const HUES = [8, 32, 48, 95, 152, 190, 214, 262, 292, 330]
const MAX_NAME = 24
const KEY = 'halley-demo-self'

const timeFormat = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit' })

/** @typedef {{name: string, hue: number}} Person hue in degrees */

/** @template T @param {readonly T[]} list */
const randomOf = list => list[Math.floor(Math.random() * list.length)]

/** @param {unknown} name */
const cleanName = name => (typeof name === 'string' ? name.trim().slice(0, MAX_NAME) : '')

/** @param {any} data @returns {Person} */
export function readPerson(data) {
  const hue = Number.isFinite(data?.hue) ? ((data.hue % 360) + 360) % 360 : 200
  return { name: cleanName(data?.name) || 'somebody', hue }
}

/** The user of this tab, with a comet's name and colour, kept in session storage. */
export class Self {
  name = randomOf(NAMES)
  hue = randomOf(HUES)

  constructor() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(KEY) ?? 'null')
      if (Number.isFinite(kept?.hue)) this.hue = kept.hue
      this.rename(kept?.name)
    } catch {
      // Without storage, every reload is a new person.
    }
  }

  /** @param {unknown} name '' changes nothing */
  rename(name) {
    this.name = cleanName(name) || this.name
    try {
      sessionStorage.setItem(KEY, JSON.stringify(this))
    } catch {
      // The name lasts until the next reload.
    }
  }
}

/** The chat, with presence. */
export class Room {
  #log = byId('room-log')
  #self
  #channel
  /** The client id of this tab. */
  #ownClient = ''
  /** @type {Set<string>} client ids */
  #present = new Set()

  /**
   * @param {import('./connection.js').Connection} connection
   * @param {import('./recovery.js').Recovery} recovery
   * @param {Self} self
   */
  constructor(connection, recovery, self) {
    this.#self = self
    const channel = connection.channel(CHANNEL)
    this.#channel = channel
    recovery.watch(channel, (_, recovered, publication) => this.#message(publication, recovered))
    connection.on('connected', ({ client: id }) => {
      this.#ownClient = id
    })
    channel.on('subscribed', ({ recovered }) => this.#subscribed(recovered))
    channel.on('subscribing', () => this.#showCount('-'))
    channel.on('join', ({ info }) => this.#joined(info.client))
    channel.on('leave', ({ info }) => this.#left(info.client))
    const [name, text] = [inputById('room-name'), inputById('room-text')]
    name.value = self.name
    name.addEventListener('change', () => {
      self.rename(name.value)
      name.value = self.name
    })
    onSubmit('room-form', () => text.value.trim() && this.#say(text))
  }

  /** @param {HTMLInputElement} field cleared when sent */
  async #say(field) {
    const { name, hue } = this.#self
    const text = field.value.trim()
    field.value = ''
    try {
      await this.#channel.publish({ text, name, hue, time: Date.now() })
    } catch (error) {
      field.value = text
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
      this.#showCount()
      if (recovered) return
      this.#log.replaceChildren()
      for (const publication of publications) this.#message(publication, false)
      if (publications.length === 0) this.#note('No messages yet.', 'empty')
    } catch {
      // The connection was lost meanwhile; the next `subscribed` retries.
    }
  }

  #showCount(count = `${this.#present.size}`) {
    for (const id of ['room-count', 'sky-count']) byId(id).textContent = count
  }

  /** @param {string} client */
  #joined(client) {
    if (this.#present.has(client)) return
    this.#present.add(client)
    this.#showCount()
    if (client !== this.#ownClient) this.#note('A tab joined')
  }

  /** @param {string} client */
  #left(client) {
    if (!this.#present.delete(client)) return
    this.#showCount()
    this.#note('A tab left')
  }

  /** @param {{data: any, info?: import('centrifuge').ClientInfo}} publication @param {boolean} recovered */
  #message({ data, info }, recovered) {
    const { name, hue } = readPerson(data)
    const who = info ? make('span', 'who', name) : make('span', 'who api', 'server API')
    who.style.setProperty('--hue', `${hue}`)
    const text = typeof data?.text === 'string' ? data.text : JSON.stringify(data)
    const line = make('li', 'message', who, text.slice(0, MAX_TEXT))
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
    // Keep the position if the user has scrolled up.
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END
    if (log.firstElementChild?.className === 'empty') log.firstElementChild.remove()
    log.append(line)
    while (log.childElementCount > MAX_LINES) log.firstElementChild?.remove()
    if (atEnd) log.scrollTop = log.scrollHeight
  }
}
