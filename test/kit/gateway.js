// A real gateway for tests: bin/halley.js with the test's configuration and a free port.

import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { fetch } from './fetch.js'
import { freePort } from './ports.js'

const LOCAL = { address: '127.0.0.1', prefix: /** @type {string[]} */ ([]) }
export const bin = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))

const running = new Set()

const killAll = () => {
  for (const child of running) child.kill('SIGKILL')
}
// A killed test, for example after a timeout, runs no teardown.
process.once('exit', killAll)
for (const signal of /** @type {const} */ (['SIGTERM', 'SIGALRM', 'SIGINT'])) process.once(signal, killAll)

/** Secrets of tests are short on purpose. */
const SHORT_SECRET = /: is only \d+ bytes? long; use 32 random bytes/

/** A running gateway with its log lines. */
export class TestGateway {
  /** @type {any[]} parsed log lines */
  lines = []
  /** @type {Set<{matches: (line: any) => boolean, resolve: (line: any) => void}>} */
  #waiting = new Set()
  /** @type {Promise<number | null>} */
  #closed

  /**
   * @param {import('node:child_process').ChildProcess} process @param {number} port @param {string} folder
   * @param {string} address
   */
  constructor(process, port, folder, address) {
    this.process = process
    this.port = port
    this.url = `http://${address}:${port}`
    this.ws = `ws://${address}:${port}/connection/websocket`
    this.folder = folder
    this.exited = new Promise(resolve => process.once('exit', (code, signal) => resolve({ code, signal })))
    /** `lines` is complete, possibly some time after the exit. */
    this.#closed = new Promise(resolve => process.once('close', resolve))
    for (const stream of [process.stdout, process.stderr]) {
      createInterface({ input: /** @type {any} */ (stream) }).on('line', text => this.#line(text))
    }
  }

  /** @param {string} text */
  #line(text) {
    let line
    try {
      line = JSON.parse(text)
    } catch {
      line = { msg: text }
    }
    if (SHORT_SECRET.test(line.msg)) return
    // The usual cause of failed tests on a stalled machine: the runner prints it.
    if (line.msg === 'worker died' && /^stuck/.test(line.reason)) console.error(`worker died: ${line.reason}`)
    this.lines.push(line)
    for (const waiting of this.#waiting) {
      if (!waiting.matches(line)) continue
      this.#waiting.delete(waiting)
      waiting.resolve(line)
    }
  }

  /**
   * @param {(line: any) => boolean} matches
   * @returns {Promise<any>} the first such log line, past or future; rejects if the gateway exits without it
   */
  line(matches) {
    const found = this.lines.find(matches)
    if (found) return Promise.resolve(found)
    return new Promise((resolve, reject) => {
      this.#waiting.add({ matches, resolve })
      this.#closed.then(code =>
        reject(new Error(`the gateway exited with ${code}: ${this.lines.map(({ msg }) => msg).join('; ')}`)),
      )
    })
  }

  /** Calls the server API. @param {string} method @param {object} [params] @returns {Promise<any>} */
  async api(method, params = {}) {
    const answer = await fetch(`${this.url}/api/${method}`, {
      method: 'POST',
      headers: { 'X-API-Key': 'key' },
      body: JSON.stringify(params),
    })
    if (answer.status !== 200) throw new Error(`HTTP ${answer.status}`)
    return answer.json()
  }

  /** @returns {number[]} pids of all workers, in order of listening */
  get workerPids() {
    return this.lines.filter(({ msg }) => msg === 'worker is listening').map(({ pid }) => pid)
  }

  async stop() {
    this.process.kill('SIGTERM')
    const ended = await this.exited
    await rm(this.folder, { recursive: true, force: true })
    return ended
  }
}

/**
 * Starts a gateway, ended with the test; resolves when every worker listens.
 * @param {any} t
 * @param {any} [config] over these: two workers, a free port of loopback, API key `key`, every origin, health, debug
 *   log, no pings (raw clients do not send pongs), no overload
 * @param {{args?: string[], env?: Record<string, string>, host?: {address: string, prefix: string[]}}} [options]
 *   `host`: its address, and its command prefix (hosts/network.js)
 * @returns {Promise<TestGateway>}
 */
export async function startGateway(t, config = {}, { args = [], env = {}, host = LOCAL } = {}) {
  const port = config.http_server?.port ?? (await freePort())
  const folder = await mkdtemp(join(tmpdir(), 'halley-test-'))
  const file = join(folder, 'config.json')
  const whole = {
    workers: 2,
    health: { enabled: true },
    log: { level: 'debug' },
    ...config,
    overload: { max_tick: '0s', ...config.overload },
    http_server: { address: host.address, port, ...config.http_server },
    http_api: { key: 'key', ...config.http_api },
    client: { allowed_origins: ['*'], ping_interval: '10m', ...config.client },
  }
  await writeFile(file, JSON.stringify(whole))
  const [command, ...rest] = [...host.prefix, process.execPath, bin, 'serve', '-c', file, ...args]
  const child = spawn(command, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  const gateway = new TestGateway(child, port, folder, host.address)
  t.teardown(() => gateway.stop())
  await gateway.line(({ msg }) => msg === 'halley is listening')
  return gateway
}
