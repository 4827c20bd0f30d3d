import { Frame } from './frames.js'

/** @import { StatusChange, UserStatuses } from '../contract.js' */
/** @import { Bus } from './client.js' */
/** @import { FrameCursor } from './records.js' */

/** Bits of a change. */
const Part = Object.freeze({ ACTIVE: 1, ONLINE: 2, STATE: 4 })

/** @param {FrameCursor} cursor of a STATUS_UPDATE @returns {{change: StatusChange, ttl: number}} */
export function readStatusChange(cursor) {
  const [parts, ttl, state] = [cursor.u8(), cursor.f64(), cursor.string()]
  const change = {
    active: (parts & Part.ACTIVE) !== 0,
    online: (parts & Part.ONLINE) !== 0,
    state: parts & Part.STATE ? state : undefined,
  }
  return { change, ttl }
}

/** Status of users, kept in the primary. @implements {UserStatuses} */
export class LocalStatuses {
  #bus
  #ttl

  /** @param {Bus} bus @param {number} ttl ms after the last update */
  constructor(bus, ttl) {
    this.#bus = bus
    this.#ttl = ttl
  }

  close() {}

  /** @type {UserStatuses['update']} */
  update(users, { active, online, state }) {
    return new Promise((resolve, reject) => {
      const writer = this.#bus.request(Frame.STATUS_UPDATE, error => (error ? reject(error) : resolve()))
      const given = state === undefined ? 0 : Part.STATE
      writer.u8((active ? Part.ACTIVE : 0) | (online ? Part.ONLINE : 0) | given)
      writer.f64(this.#ttl).string(state ?? '')
      this.#writeUsers(users)
    })
  }

  /** @type {UserStatuses['get']} */
  get(users) {
    return new Promise((resolve, reject) => {
      this.#bus.request(Frame.STATUS_GET, (error, cursor) => {
        if (error || cursor === null) return reject(error)
        resolve(users.map(() => ({ active: cursor.f64(), online: cursor.f64(), state: cursor.string() })))
      })
      this.#writeUsers(users)
    })
  }

  /** @type {UserStatuses['remove']} */
  remove(users) {
    return new Promise((resolve, reject) => {
      this.#bus.request(Frame.STATUS_REMOVE, error => (error ? reject(error) : resolve()))
      this.#writeUsers(users)
    })
  }

  /** Ends a frame. @param {readonly string[]} users */
  #writeUsers(users) {
    const { writer } = this.#bus
    writer.u32(users.length)
    for (const user of users) writer.string(user)
    writer.end()
  }
}
