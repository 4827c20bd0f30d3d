// Identities: every tab has the name and colour of a comet.

const NAMES =
  'Encke Biela Faye Donati Tempel Borrelly Wild Holmes Hyakutake Lovejoy McNaught Kohoutek Bennett Ikeya Seki Olbers Tuttle Wirtanen Giacobini Brorsen Austin Levy Kowal Machholz'.split(
    ' ',
  )
const HUES = [8, 32, 48, 95, 152, 190, 214, 262, 292, 330]
const MAX_NAME = 24
const KEY = 'halley-demo-self'

/**
 * @typedef {object} Person
 * @property {string} name
 * @property {number} hue degrees
 */

/** @template T @param {readonly T[]} list */
const randomOf = list => list[Math.floor(Math.random() * list.length)]

/** @param {unknown} name */
const cleanName = name => (typeof name === 'string' ? name.trim().slice(0, MAX_NAME) : '')

/** @param {any} data @returns {Person} */
export function readPerson(data) {
  const hue = Number.isFinite(data?.hue) ? ((data.hue % 360) + 360) % 360 : 200
  return { name: cleanName(data?.name) || 'somebody', hue }
}

/** The person at this tab, kept in its session storage across reloads. */
export class Self {
  constructor() {
    const kept = Self.#kept()
    this.name = cleanName(kept?.name) || randomOf(NAMES)
    this.hue = Number.isFinite(kept?.hue) ? kept.hue : randomOf(HUES)
    this.#keep()
  }

  static #kept() {
    try {
      return JSON.parse(sessionStorage.getItem(KEY) ?? 'null')
    } catch {
      return null
    }
  }

  #keep() {
    try {
      sessionStorage.setItem(KEY, JSON.stringify({ name: this.name, hue: this.hue }))
    } catch {
      // Without storage, every reload is a new person.
    }
  }

  /** @param {string} name '' changes nothing */
  rename(name) {
    this.name = cleanName(name) || this.name
    this.#keep()
  }
}
