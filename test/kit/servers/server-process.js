// The process of a server that a test starts, and the processes of that one: they end with the test.

import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** Ends what it runs with the test's process, even when that one is killed. */
const GUARD = ['/usr/bin/setpriv', '--pdeathsig', 'KILL']
const MAX_LINES = 1000

/** @type {Set<ServerProcess>} */
const running = new Set()
process.on('exit', () => {
  for (const server of running) server.signal('SIGKILL')
})

/** @param {number} root process id @returns {number[]} it, and all that come from it */
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

/** @param {number} pid @returns {boolean} whether all threads are stopped, or have ended */
function standsStill(pid) {
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
 * @property {RegExp} ready a line that says that it serves
 * @property {string} missing the error where the program cannot be run
 * @property {Record<string, string>} [env] beside that of the test
 * @property {string} [cwd]
 * @property {number} [uid]
 * @property {number} [gid]
 */

/** One server, which can be killed, stand still and come back with the same command line. */
export class ServerProcess {
  /** @type {string[]} what it has said, newest last */
  log = []
  #run
  /** @type {import('node:child_process').ChildProcess | null} */
  #child = null
  /** @type {Promise<void>} */
  #exited = Promise.resolve()

  /** @param {Run} run */
  constructor(run) {
    this.#run = run
  }

  /** @returns {number} of its process, 0 when it does not run */
  get pid() {
    return this.#child?.pid ?? 0
  }

  /**
   * @returns {Promise<void>} when it serves
   * @throws {Error} when it cannot be run, or ends before
   */
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

  /** To it and all processes that come from it. @param {NodeJS.Signals} signal */
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

  /** SIGKILL. Resolves when it is dead. */
  async kill() {
    this.signal('SIGKILL')
    await this.#exited
  }

  /** @param {NodeJS.Signals} [signal] that asks it to end. Resolves when it is gone. */
  async shutdown(signal = 'SIGTERM') {
    this.#child?.kill(signal)
    await this.#exited
  }

  /** It stands still when this returns; its connections stay open. */
  pause() {
    this.signal('SIGSTOP')
    // A thread on another core goes on for a moment.
    const until = performance.now() + 1000
    while (this.pid !== 0 && !treeOf(this.pid).every(standsStill) && performance.now() < until);
  }

  resume() {
    this.signal('SIGCONT')
  }

  /** Begins again with the same command line; killed before, if it runs. */
  async restart() {
    await this.kill()
    await this.start()
  }
}
