// A drone process and the test's controller.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { dialLink, listenLinks } from '../../fleet/link/tls.js'
import { signal } from '../../fleet/runner/proc.js'
import { tempDir } from '../kit/folders.js'
import { until } from '../kit/wait.js'
import { settingsOf as engineSettings } from './engine/engines.js'

export const SECRET = '5e'.repeat(32)
export const host = '127.0.0.1'
/** The drone's program. */
export const DRONE = fileURLToPath(new URL('../../fleet/drone/main.js', import.meta.url))

/** @param {any} [some] @returns {import('../../fleet/schema.js').Settings} */
export const settingsOf = some => engineSettings('', { targets: [], ...some })

/** @param {number} port @param {string} identity @param {string} [secret] @returns {import('node:tls').TLSSocket} of a peer with it */
export const secretSocket = (port, identity, secret = SECRET) =>
  connect({
    ...{ host, port, minVersion: 'TLSv1.3', checkServerIdentity: () => undefined },
    pskCallback: () => ({ psk: Buffer.from(secret, 'hex'), identity }),
  }).on('error', () => {})

/** @param {number} pid */
export const lives = pid => signal(pid, 0)

/** A drone and the messages it sent. */
export class TestDrone {
  /** @type {any[]} */
  hellos = []
  /** @type {any[]} */
  samples = []
  /** @type {string[]} */
  events = []
  /** @type {string[]} */
  faults = []
  output = ''
  #revision = 0
  /** @type {import('../../fleet/link/link.js').Link | null} */
  link = null

  /** @param {import('node:child_process').ChildProcess} child */
  attach(child) {
    this.child = child
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', text => {
        this.output += text
      })
    // After its last output.
    this.exited = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  }

  /** @param {import('../../fleet/link/link.js').Link} link */
  take(link) {
    this.link = link
    link.onMessage = message => {
      if (message.type === 'hello') this.hellos.push(message)
      if (message.type === 'event') this.events.push(message.text)
      if (message.type === 'sample') this.samples.push(message.sample)
    }
    link.onClose = () => {
      if (this.link === link) this.link = null
    }
  }

  /** @template T @param {() => T} find @returns {Promise<NonNullable<T>>} its first truthy value */
  until(find) {
    return until(find)
  }

  /** @param {(sample: any) => any} matches @returns {Promise<any>} the first one from now on */
  sample(matches = () => true) {
    const from = this.samples.length
    return this.until(() => this.samples.slice(from).find(matches))
  }

  /** @param {string} type @param {any} [rest] @returns {Promise<any>} */
  async ask(type, rest) {
    return /** @type {import('../../fleet/link/link.js').Link} */ (this.link).request({ type, ...rest })
  }

  /** @param {any} some settings */
  set(some) {
    return this.ask('settings', { revision: ++this.#revision, settings: settingsOf(some) })
  }

  /** @returns {number[]} of its processes, but the agent's, in the last sample */
  get pids() {
    return this.samples
      .at(-1)
      ?.processes.flatMap((/** @type {any} */ { pid, role }) => (role === 'agent' ? [] : pid))
  }
}

/** Starts a drone and, unless it listens, its controller. @param {any} t @param {any} [some] of its configuration */
export async function startDrone(t, some = {}) {
  const drone = new TestDrone()
  const folder = tempDir(t)
  const config = join(folder, 'config.json')
  const listening = some.listen !== undefined
  const link = {
    host,
    secret: SECRET,
    run: 'r1',
    onLink: (/** @type {any} */ link) => drone.take(link),
    onFault: (/** @type {string} */ text) => drone.faults.push(text),
  }
  let server = listening ? null : await listenLinks({ ...link, port: 0 })
  const port = server?.port
  const launch = {
    id: 'd1',
    run: 'r1',
    secret: SECRET,
    allow: [host],
    orphanAfter: 5,
    exitAfter: 20,
    ...some,
  }
  if (server) launch.controller = `${host}:${port}`
  await writeFile(config, JSON.stringify(launch), { mode: 0o600 })
  const child = spawn(process.execPath, [DRONE, config], { stdio: ['ignore', 'pipe', 'pipe'] })
  drone.attach(child)
  t.teardown(async () => {
    child.kill('SIGKILL')
    for (const pid of drone.pids ?? []) signal(pid, 'SIGKILL')
    await drone.exited
    await server?.close()
  })
  if (!listening) await drone.until(() => drone.hellos.length > 0)
  return Object.assign(drone, {
    folder,
    config,
    /** Stops the controller. */
    leave: async () => {
      await server?.close()
      server = null
    },
    /** Restarts it on the same port. */
    comeBack: async () => {
      server = await listenLinks({ ...link, port: Number(port) })
    },
    /** @param {string} place that it listens on */
    dial: async place => {
      const port = Number(place.split(':')[1])
      const line = await dialLink({ host, port, secret: SECRET, identity: 'r1/controller' })
      drone.take(line)
      await drone.until(() => drone.hellos.length > 0)
      return line
    },
  })
}
