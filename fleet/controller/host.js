// What a controller's process holds: one fleet at most, its statistics on disk, and the end of both.

import { join } from 'node:path'
import { PROVIDERS } from '../providers/index.js'
import { FleetCsv, statisticsLine } from './csv.js'
import { Fleet } from './fleet.js'
import { readState } from './store.js'

/** Pictures between two lines of statistics. */
const LINE_EACH = 5
export const CSV_NAME = 'statistics.csv'

export class Host {
  /** @type {Fleet | null} */
  fleet = null
  #dir
  #log
  /** @type {FleetCsv | null} */
  #csv = null
  #pictures = 0
  /** Two commands that open the fleet open one. @type {Promise<any>} */
  #opening = Promise.resolve()
  /** @type {() => void} */
  #onLeave

  /**
   * @param {object} options
   * @param {string} options.dir
   * @param {(text: string) => void} options.log
   * @param {() => void} options.onLeave the fleet is no more: neither needs the controller be
   */
  constructor({ dir, log, onLeave }) {
    this.#dir = dir
    this.#log = log
    this.#onLeave = onLeave
  }

  /**
   * Takes up the fleet of a controller before this one, if there was one.
   * @throws {Error} one line
   */
  async resume() {
    const state = await readState(this.#dir)
    if (state !== null && state.drones.length > 0) await this.open({ provider: state.provider })
  }

  /**
   * @param {{provider?: string, flags?: Record<string, any>, bind?: string, advertise?: string}} options `provider`: default that of
   *   the fleet there is, else local
   * @returns {Promise<Fleet>}
   * @throws {Error} one line
   */
  open(options) {
    const opened = this.#opening.then(() => this.#open(options))
    this.#opening = opened.catch(() => {})
    return opened
  }

  /** @param {{provider?: string, flags?: Record<string, any>, bind?: string, advertise?: string}} options */
  async #open({ provider: name, flags, bind, advertise }) {
    const { fleet } = this
    if (fleet !== null && fleet.size === 0 && (name !== undefined || bind !== undefined)) {
      // Nothing hangs on it: this one may be of another provider, or listen elsewhere.
      await fleet.close()
      this.fleet = null
    } else if (fleet !== null) {
      if (bind !== undefined || advertise !== undefined)
        throw new Error('--bind and --advertise are for the first drones: where these call is settled')
      if (name !== undefined && name !== fleet.provider.name)
        throw new Error(
          `the drones there are, are of ${fleet.provider.name}: stop them first, or use another --dir`,
        )
      return fleet
    }
    const known = await readState(this.#dir)
    const provider = await PROVIDERS[name ?? known?.provider ?? 'local'].load()
    const opened = await Fleet.open({ dir: this.#dir, provider, flags, bind, advertise, log: this.#log })
    this.fleet = opened
    await this.#csv?.close()
    this.#csv = null
    const file = join(this.#dir, CSV_NAME)
    try {
      this.#csv = await FleetCsv.open(file, { append: known !== null, onFault: this.#log })
    } catch (error) {
      this.#log(`${file} cannot be written: ${error.message}`)
    }
    opened.on('snapshot', snapshot => this.#onSnapshot(snapshot))
    return opened
  }

  /** @param {import('../schema.js').FleetSnapshot} snapshot */
  #onSnapshot(snapshot) {
    if (snapshot.drones.length === 0) return
    this.#csv?.write(snapshot)
    if (++this.#pictures % LINE_EACH !== 0) return
    const line = statisticsLine(snapshot)
    if (line !== '') this.#log(line)
  }

  /** The process may go, once what was asked last is answered. */
  leave() {
    setImmediate(() => this.#onLeave())
  }

  async close() {
    await this.fleet?.close()
    await this.#csv?.close()
  }
}
