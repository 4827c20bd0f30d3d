// Tells systemd the state of the gateway: sd_notify(3). Its protocol needs a Unix datagram socket, which Node.js does
// not have. A shell runs systemd-notify for each message: a fork of the primary itself stands still for 100 ms once it
// holds 600 MB. The shell ends when its input ends, also if the primary is killed.

import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** @import { ChildProcess } from 'node:child_process' */
/** @import { Logger } from 'pino' */

/** systemd may send SIGTERM to all processes of the unit: the shell still has STOPPING=1 to deliver. */
const SHELL = `trap '' TERM INT HUP
command -v systemd-notify >/dev/null || exit 127
while IFS= read -r line; do systemd-notify $line; done`
const NOT_FOUND = 127
/** Unread bytes after which watchdog messages are left out: systemd does not answer. */
const MAX_UNREAD = 1024
/** A worker may be replaced within one period, so that a skipped message is no reason for a restart. */
const MESSAGES_PER_PERIOD = 4
/** Longest delay of a Node.js timer, ms. */
const MAX_DELAY = 2 ** 31 - 1

/** Sends nothing where systemd has not asked for it (NOTIFY_SOCKET). */
export class ServiceManager {
  #env
  #log
  #healthy
  /** ms between two watchdog messages; 0: none */
  #interval
  #enabled
  #stopping = false
  /** The last fault in the log. */
  #fault = ''
  /** @type {ChildProcess | null} */
  #shell = null
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {object} options @param {Readonly<Record<string, string | undefined>>} options.env of the process
   * @param {number} options.pid of the process @param {Logger} options.log
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
    // CLOCK_MONOTONIC, as systemd compares it with the time of its own request.
    this.#send(`RELOADING=1 MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`)
  }

  /** The gateway shuts down. */
  stopping() {
    this.#stopping = true
    this.#send('STOPPING=1')
  }

  /** Ends the messages; those that were sent are delivered. */
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
      this.#warn('systemd-notify is not installed: systemd gets no notifications of this gateway')
    }
    shell.once('exit', onEnd)
    shell.once('error', error => {
      onEnd(null)
      this.#warn(`systemd gets no notifications: ${error.message}`)
    })
    // There are no pipes if no descriptor was free.
    if (shell.stdin === undefined) return
    shell.stdin.on('error', () => {})
    createInterface({ input: shell.stderr }).on('line', line => this.#warn(`systemd-notify failed: ${line}`))
    // The gateway ends without waiting for it.
    for (const handle of [shell, shell.stdin, shell.stderr]) /** @type {any} */ (handle).unref()
  }

  /** A fault repeats with each message: it is logged once. @param {string} text */
  #warn(text) {
    if (text === this.#fault) return
    this.#fault = text
    this.#log.warn(text)
  }
}
