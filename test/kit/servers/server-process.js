// Servers of tests: processes that end with the test, even if it is killed.

import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'

/** Ends the command with the process of the test. */
const GUARD = ['/usr/bin/setpriv', '--pdeathsig', 'KILL']
const MAX_LINES = 1000
const TRIES = 20

/** @type {Set<ServerProcess>} */
const running = new Set()
process.on('exit', () => {
  for (const server of running) server.signal('SIGKILL')
})

/** @param {number} root process id @returns {number[]} with all descendants */
function treeOf(root) {
  /** @type {Map<number, number[]>} */
  const children = new Map()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
      children.set(parent, [...(children.get(parent) ?? []), Number(name)])
    } catch {
      // It has ended.
    }
  }
  const tree = [root]
  for (const pid of tree) tree.push(...(children.get(pid) ?? []))
  return tree
}

/** @param {number} pid @returns {boolean} whether all its threads are stopped or have ended */
function isStopped(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`).every(thread => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
      return 'TtZX'.includes(stat[stat.lastIndexOf(')') + 2])
    })
  } catch {
    return true
  }
}

/**
 * @typedef {object} Run
 * @property {string} command
 * @property {string[]} args
 * @property {RegExp} ready log line when ready
 * @property {string} missing error if the program is not installed
 * @property {Record<string, string>} [env] added to the test's
 * @property {string} [cwd]
 * @property {number} [uid]
 * @property {number} [gid]
 */

/** A server that can be killed, paused and restarted with the same command line. */
export class ServerProcess {
  /** @type {string[]} last lines of output */
  log = []
  #run
  /** @type {import('node:child_process').ChildProcess | null} */
  #child = null
  /** @type {Promise<void>} */
  #exited = Promise.resolve()

  /** @param {Run} run @param {number} port of loopback @param {string} [folder] of its data, removed by `stop` */
  constructor(run, port, folder = '') {
    this.#run = run
    this.port = port
    this.folder = folder
  }

  /** @returns {number} process id; 0: not running */
  get pid() {
    return this.#child?.pid ?? 0
  }

  /** @returns {Promise<void>} when ready @throws {Error} if it is not installed, or ends before it is ready */
  start() {
    const { command, args, ready, missing, env, cwd, uid, gid } = this.#run
    const [program, ...rest] = [...(existsSync(GUARD[0]) ? GUARD : []), command, ...args]
    const child = spawn(program, rest, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
      cwd,
      uid,
      gid,
    })
    this.#child = child
    running.add(this)
    this.#exited = new Promise(resolve => {
      const gone = () => {
        running.delete(this)
        if (this.#child === child) this.#child = null
        resolve()
      }
      child.once('exit', gone)
      child.once('error', gone)
    })
    return new Promise((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: /** @type {any} */ (stream) }).on('line', line => {
          this.log.push(line)
          if (this.log.length > MAX_LINES) this.log.shift()
          if (ready.test(line)) resolve()
        })
      }
      child.once('error', () => reject(new Error(missing)))
      child.once('close', () => {
        const text = this.log.slice(-5).join('; ')
        reject(new Error(text.includes('failed to execute') ? missing : `${command} ended: ${text}`))
      })
    })
  }

  /** Also to all its descendants. @param {NodeJS.Signals} signal */
  signal(signal) {
    if (this.pid === 0) return
    for (const pid of treeOf(this.pid)) {
      try {
        process.kill(pid, signal)
      } catch {
        // It has ended.
      }
    }
  }

  /** SIGKILL. Resolves when it has exited. */
  async kill() {
    this.signal('SIGKILL')
    await this.#exited
  }

  /** @param {NodeJS.Signals} [signal] @returns {Promise<void>} when it has exited */
  async shutdown(signal = 'SIGTERM') {
    this.#child?.kill(signal)
    await this.#exited
  }

  /** Suspends the process; its connections stay open. */
  pause() {
    this.signal('SIGSTOP')
    // A thread on another core may run for a moment.
    const until = performance.now() + 1000
    while (this.pid !== 0 && !treeOf(this.pid).every(isStopped) && performance.now() < until);
  }

  resume() {
    this.signal('SIGCONT')
  }

  async restart() {
    await this.kill()
    await this.start()
  }

  /** Ends the server and removes its data. */
  async stop() {
    await this.kill()
    if (this.folder !== '') await rm(this.folder, { recursive: true, force: true })
  }
}

/**
 * Starts a server; it ends with the test. Retries if another program takes its port meanwhile.
 * @template {ServerProcess} S
 * @param {any} t @param {() => S | Promise<S>} create with a free port @param {(server: S) => Promise<unknown>} [end]
 * @returns {Promise<S>} running
 */
export async function startServer(t, create, end = server => server.stop()) {
  for (let tried = 1; ; tried++) {
    const server = await create()
    try {
      await server.start()
      t.teardown(() => end(server))
      return server
    } catch (error) {
      await end(server)
      if (tried === TRIES || !server.log.some(line => /already in use|eaddrinuse/i.test(line))) throw error
    }
  }
}
