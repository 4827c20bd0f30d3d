// The controller as its own process: `node daemon.js DIR`, started by `halley fleet start`; also `halley fleet
// controller`.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { escapeControls } from '../../src/base/terminal-text.js'
import { PROVIDERS } from '../providers/index.js'
import { ControlServer } from './control-server.js'
import { FleetCsv, statisticsLine } from './csv.js'
import { Fleet } from './fleet.js'
import { prepareFolder, readState, socketPath, takeLock } from './folder.js'

const LINE_EACH = 5
const CSV_NAME = 'statistics.csv'

export class FleetHost {
  /** @type {Fleet | null} */
  fleet = null
  #dir
  #log
  /** @type {FleetCsv | null} */
  #csv = null
  #pictures = 0
  /** Concurrent commands open one fleet. @type {Promise<any>} */
  #opening = Promise.resolve()
  #onLeave

  /**
   * @param {object} options @param {string} options.dir @param {(text: string) => void} options.log
   * @param {() => void} options.onLeave the fleet has ended; the controller may exit
   */
  constructor({ dir, log, onLeave }) {
    this.#dir = dir
    this.#log = log
    this.#onLeave = onLeave
  }

  /** Resumes the fleet of a previous controller, if there is one. */
  async resume() {
    const state = await readState(this.#dir)
    if (state !== null && state.drones.length > 0) await this.open({ provider: state.provider })
  }

  /** @param {{provider?: string, flags?: Record<string, any>, bind?: string, advertise?: string}} options see #open() */
  open(options) {
    const opened = this.#opening.then(() => this.#open(options))
    this.#opening = opened.catch(() => {})
    return opened
  }

  /**
   * @param {{provider?: string, flags?: Record<string, any>, bind?: string, advertise?: string}} options `provider`:
   *   default: as in the existing fleet, else local
   */
  async #open({ provider: name, flags, bind, advertise }) {
    const { fleet } = this
    if (fleet !== null && fleet.size === 0 && (name !== undefined || bind !== undefined)) {
      // No drones: the new fleet may use another provider or address.
      await fleet.close()
      this.fleet = null
    } else if (fleet !== null) {
      if (bind !== undefined || advertise !== undefined)
        throw new Error('--bind and --advertise apply only to the first drones of a fleet')
      if (name !== undefined && name !== fleet.provider.name)
        throw new Error(
          `the drones of this fleet use provider ${fleet.provider.name}: stop them first, or use another --dir`,
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

  leave() {
    setImmediate(() => this.#onLeave())
  }

  async close() {
    await this.fleet?.close()
    await this.#csv?.close()
  }
}

/** ms without drones and commands until it exits; 0 after a failed start. */
const IDLE = 10_000

/**
 * Controls a folder until its fleet ends or a signal arrives; after a signal the drones wait for another controller.
 * @param {string} dir @param {object} io @param {(text: string) => void} io.log
 * @param {() => void} io.onReady it accepts commands
 * @param {boolean} [io.foreground] also run without drones
 * @throws {Error} one line: another controller runs, the state is damaged, a port is in use
 */
export async function runController(dir, { log, onReady, foreground = false }) {
  const path = socketPath(dir)
  await prepareFolder(dir)
  const release = await takeLock(dir)
  /** @type {(why: string) => void} */
  let end = () => {}
  const over = new Promise(resolve => {
    end = resolve
  })
  const host = new FleetHost({ dir, log, onLeave: () => end('fleet stopped') })
  const server = new ControlServer(host, log)
  try {
    await host.resume()
    await server.listen(path)
    const idle = setInterval(() => {
      if (foreground) return
      const quiet = server.idle && Date.now() - server.quietSince > (server.failed ? 0 : IDLE)
      if ((host.fleet?.size ?? 0) === 0 && quiet) end('no drones')
    }, 1000)
    for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
      process.once(signal, () => end(`${signal}: the drones keep running and wait for another controller`))
    log(`controller of ${dir}, process ${process.pid}`)
    onReady()
    log(`exiting: ${await over}`)
    clearInterval(idle)
  } finally {
    await server.close()
    await host.close()
    await rm(path, { force: true })
    await release()
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const log = (/** @type {string} */ text) =>
    void process.stdout.write(`${new Date().toISOString()} ${escapeControls(text)}\n`)
  // It must survive a full disk and a closed terminal.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  // The next command starts another controller, which finds the drones.
  process.on('uncaughtException', error => {
    log(error.stack ?? error.message)
    process.exit(1)
  })
  /** @param {object} message */
  const report = message => {
    if (!process.connected) return
    process.send?.(message, () => process.connected && process.disconnect())
  }
  try {
    await runController(process.argv[2], { log, onReady: () => report({ ready: true }) })
    process.exit(0)
  } catch (error) {
    log(error.message)
    if (!process.connected) process.exit(1)
    process.send?.({ error: error.message }, () => process.exit(1))
  }
}
