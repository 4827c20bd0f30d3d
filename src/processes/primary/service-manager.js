// Notifies systemd of the state of the gateway: sd_notify(3). Node.js has no Unix datagram sockets, so a shell runs
// systemd-notify for each message: forking the primary itself takes 100 ms at 600 MB. The shell exits when its input
// closes, even if the primary is killed.

import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** @import { ChildProcess } from 'node:child_process' */
/** @import { Logger } from 'pino' */

/** Ignores SIGTERM, which systemd may send to all processes of the unit: STOPPING=1 must be delivered. */
const SHELL = `trap '' TERM INT HUP
command -v systemd-notify >/dev/null || exit 127
while IFS= read -r line; do systemd-notify $line; done`
const NOT_FOUND = 127
/** Unread bytes above which watchdog messages are skipped: systemd is unresponsive. */
const MAX_UNREAD = 1024
/** A worker may be replaced within one period: a skipped message must not cause a restart. */
const MESSAGES_PER_PERIOD = 4
/** Maximum delay of a Node.js timer, ms. */
const MAX_DELAY = 2 ** 31 - 1

/** Sends nothing unless systemd sets NOTIFY_SOCKET. */
export class ServiceManager {
  #env
  #log
  #healthy
  /** ms between two watchdog messages; 0: none */
  #interval
  #enabled
  #stopping = false
  /** Last fault in the log. */
  #fault = ''
  /** @type {ChildProcess | null} */
  #shell = null
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {object} options
   * @param {Readonly<Record<string, string | undefined>>} options.env of the process
   * @param {number} options.pid of the process
   * @param {Logger} options.log
   * @param {() => boolean} options.healthy whether a watchdog message may be sent
   */
  constructor({ env, pid, log, healthy }) {
    const { PATH, NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID } = env
    this.#env = { PATH, NOTIFY_SOCKET }
    this.#log = log
    this.#healthy = healthy
    this.#enabled = Boolean(NOTIFY_SOCKET)
    const mine = !WATCHDOG_PID || Number(WATCHDOG_PID) === pid
    const period = mine && /^\d+$/.test(WATCHDOG_USEC ?? '') ? Number(WATCHDOG_USEC) / 1000 : 0
    this.#interval = Math.min(MAX_DELAY, period / MESSAGES_PER_PERIOD)
    if (this.#enabled) this.#start()
  }

  /** The gateway serves clients. */
  ready() {
    this.#send('READY=1')
    if (!this.#enabled || this.#interval === 0 || this.#timer !== undefined) return
    this.#timer = setInterval(() => {
      const unread = this.#shell?.stdin?.writableLength ?? 0
      if (unread < MAX_UNREAD && (this.#stopping || this.#healthy())) this.#send('WATCHDOG=1')
    }, this.#interval)
  }

  /** A reload begins; `ready` ends it. */
  reloading() {
    // CLOCK_MONOTONIC: systemd compares it with the time of its request.
    this.#send(`RELOADING=1 MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`)
  }

  /** The gateway shuts down. */
  stopping() {
    this.#stopping = true
    this.#send('STOPPING=1')
  }

  /** Stops sending; pending messages are delivered. */
  close() {
    clearInterval(this.#timer)
    this.#enabled = false
    this.#shell?.stdin?.end()
  }

  /** @param {string} line variables, separated by spaces */
  #send(line) {
    if (!this.#enabled) return
    if (this.#shell === null) this.#start()
    this.#shell?.stdin?.write(`${line}\n`)
  }

  #start() {
    const shell = spawn('/bin/sh', ['-c', SHELL], {
      stdio: ['pipe', 'ignore', 'pipe'],
      env: this.#env,
      cwd: '/',
    })
    this.#shell = shell
    const onEnd = (/** @type {number | null} */ code) => {
      if (this.#shell === shell) this.#shell = null
      if (code !== NOT_FOUND) return
      this.#enabled = false
      clearInterval(this.#timer)
      this.#warn('systemd-notify is not installed: systemd is not notified')
    }
    shell.once('exit', onEnd)
    shell.once('error', error => {
      onEnd(null)
      this.#warn(`cannot run systemd-notify: ${error.message}`)
    })
    // No pipes without free descriptors.
    if (shell.stdin === undefined) return
    shell.stdin.on('error', () => {})
    createInterface({ input: shell.stderr }).on('line', line => this.#warn(`systemd-notify failed: ${line}`))
    // Must not keep the gateway alive.
    for (const handle of [shell, shell.stdin, shell.stderr]) /** @type {any} */ (handle).unref()
  }

  /** Logs a repeated fault only once. @param {string} text */
  #warn(text) {
    if (text === this.#fault) return
    this.#fault = text
    this.#log.warn(text)
  }
}
