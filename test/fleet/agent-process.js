// A drone as users have it: a process, and a controller of the test's own at the other end of its line.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dialLink, listenLinks } from '../../fleet/link/tls.js'

export const SECRET = '5e'.repeat(32)
export const host = '127.0.0.1'
/** The drone's program. */
export const DRONE = fileURLToPath(new URL('../../fleet/drone/main.js', import.meta.url))

/** @returns {import('../../fleet/schema.js').Settings} @param {any} [some] */
export const settingsOf = (some = {}) => ({
  targets: [],
  transport: 'websocket',
  connections: 0,
  first: 0,
  total: some.connections ?? 0,
  concurrency: 100,
  rate: 0,
  addresses: [],
  ports: '',
  channels: [],
  recover: false,
  user: '',
  churn: 0,
  backoff: { min: 100, max: 500 },
  publish: null,
  publishFrom: 0,
  ...some,
})

/** @param {number} pid @returns {boolean} */
export const lives = pid => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** @param {number} pid that may have ended */
function end(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}

/** What is known of one drone: what it sent, and a way to wait for it. */
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
  /** @type {Set<() => void>} */
  #looks = new Set()
  /** @type {import('../../fleet/link/link.js').Link | null} */
  link = null

  /** @param {import('node:child_process').ChildProcess} child */
  attach(child) {
    this.child = child
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', text => {
        this.output += text
        this.changed()
      })
    // When all that it has written has come, too.
    this.exited = once(child, 'close').then(([code, signal]) => {
      this.changed()
      return { code, signal }
    })
  }

  /** @param {import('../../fleet/link/link.js').Link} link */
  take(link) {
    this.link = link
    link.onMessage = message => {
      if (message.type === 'hello') this.hellos.push(message)
      if (message.type === 'event') this.events.push(message.text)
      if (message.type === 'sample') this.samples.push(message.sample)
      this.changed()
    }
    link.onClose = () => {
      if (this.link === link) this.link = null
      this.changed()
    }
    this.changed()
  }

  changed() {
    for (const look of this.#looks) look()
  }

  /**
   * @template T
   * @param {() => T} find
   * @returns {Promise<NonNullable<T>>} what it finds first
   */
  until(find) {
    return new Promise(resolve => {
      const look = () => {
        const found = find()
        if (!found) return
        this.#looks.delete(look)
        resolve(/** @type {any} */ (found))
      }
      this.#looks.add(look)
      look()
    })
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

/**
 * Starts a drone, and a controller for it unless it listens itself, and waits for its hello.
 *
 * @param {any} t
 * @param {any} [some] of its configuration
 */
export async function startDrone(t, some = {}) {
  const drone = new TestDrone()
  const folder = await mkdtemp(join(tmpdir(), 'halley-drone-'))
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
    for (const pid of drone.pids ?? []) end(pid)
    await drone.exited
    await server?.close()
    await rm(folder, { recursive: true, force: true })
  })
  if (!listening) await drone.until(() => drone.hellos.length > 0)
  return Object.assign(drone, {
    folder,
    config,
    /** The controller goes. */
    leave: async () => {
      await server?.close()
      server = null
    },
    /** It comes again, where it was. */
    comeBack: async () => {
      server = await listenLinks({ ...link, port: Number(port) })
    },
    /** @param {string} place that it listens on */
    dial: async place => {
      const line = await dialLink({
        host,
        port: Number(place.split(':')[1]),
        secret: SECRET,
        identity: 'r1/controller',
      })
      drone.take(line)
      await drone.until(() => drone.hellos.length > 0)
      return line
    },
  })
}
