// The controller as a process of its own: `node daemon.js DIR`, which `halley fleet start` starts, and `halley fleet controller` is.

import { rm } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { ControlServer } from './control-server.js'
import { Host } from './host.js'
import { takeLock } from './lock.js'
import { socketPath } from './paths.js'
import { prepareFolder } from './store.js'

/** ms without drones and without commands after which it ends; after a start that failed at once. */
const IDLE = 10_000

/**
 * Is the controller of a folder until its fleet is no more, or it is told to go by a signal: then the drones stay, and wait for
 * another one.
 *
 * @param {string} dir
 * @param {object} io
 * @param {(text: string) => void} io.log
 * @param {() => void} io.onReady it takes commands
 * @param {boolean} [io.foreground] it stays, also without drones: somebody wants it to
 * @returns {Promise<void>} when it is over
 * @throws {Error} one line: there is a controller already, the state is damaged, a port is in use
 */
export async function beController(dir, { log, onReady, foreground = false }) {
  const path = socketPath(dir)
  await prepareFolder(dir)
  const release = await takeLock(dir)
  /** @type {(why: string) => void} */
  let end = () => {}
  const over = new Promise(resolve => {
    end = resolve
  })
  const host = new Host({ dir, log, onLeave: () => end('the fleet is stopped') })
  const server = new ControlServer(host, log)
  try {
    await host.resume()
    await server.listen(path)
    const idle = setInterval(() => {
      if (foreground) return
      const quiet = server.idle && Date.now() - server.quietSince > (server.vain ? 0 : IDLE)
      if ((host.fleet?.size ?? 0) === 0 && quiet) end('there are no drones')
    }, 1000)
    for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
      process.once(signal, () =>
        end(`${signal}: the drones stay, and wait for another controller for a while`),
      )
    log(`controller of ${dir}, process ${process.pid}`)
    onReady()
    log(`ends: ${await over}`)
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
    void process.stdout.write(`${new Date().toISOString()} ${text}\n`)
  // A full disk must not end it, nor must a terminal that is no more.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  // The next command starts another one, which finds the drones.
  process.on('uncaughtException', error => {
    log(error.stack ?? error.message)
    process.exit(1)
  })
  /** @param {object} message */
  const tell = message => {
    if (!process.connected) return
    process.send?.(message, () => process.connected && process.disconnect())
  }
  try {
    await beController(process.argv[2], { log, onReady: () => tell({ ready: true }) })
    process.exit(0)
  } catch (error) {
    log(error.message)
    if (!process.connected) process.exit(1)
    process.send?.({ error: error.message }, () => process.exit(1))
  }
}
