// A real gateway for tests: bin/halley.js with a configuration of the test's own, several workers, a free port.

import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { fetch } from './fetch.js'
import { freePort } from './ports.js'

const LOCAL = { address: '127.0.0.1', prefix: /** @type {string[]} */ ([]) }
/** Path of bin/halley.js. */
export const bin = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))

/** @type {Set<import('node:child_process').ChildProcess>} gateways that run */
const running = new Set()

const killAll = () => {
  for (const child of running) child.kill('SIGKILL')
}
// A test that is ended from outside, as one that takes too long is, does not come to stop what it has started.
process.once('exit', killAll)
for (const signal of /** @type {const} */ (['SIGTERM', 'SIGALRM', 'SIGINT'])) process.once(signal, killAll)

/** The warning of a secret below 32 bytes: those of tests are short on purpose. */
const SHORT_SECRET = /: is only \d+ bytes? long; use 32 random bytes/

/**
 * A running gateway. Its log lines are kept, and can be waited for.
 */
export class TestGateway {
  /** @type {any[]} parsed log lines */
  lines = []
  /** @type {Set<{matches: (line: any) => boolean, resolve: (line: any) => void}>} */
  #waiting = new Set()
  /** @type {Promise<number | null>} */
  #closed

  /**
   * @param {import('node:child_process').ChildProcess} process
   * @param {number} port
   * @param {string} folder
   * @param {string} address
   */
  constructor(process, port, folder, address) {
    this.process = process
    this.port = port
    this.url = `http://${address}:${port}`
    this.ws = `ws://${address}:${port}/connection/websocket`
    this.folder = folder
    /** @type {Promise<{code: number | null, signal: string | null}>} */
    this.exited = new Promise(resolve => process.once('exit', (code, signal) => resolve({ code, signal })))
    /** All that it has written is in `lines`, which may be some time after its end. */
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
    // On a machine that stands still for long this is why a test fails: the runner prints it with the failure.
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
   * @returns {Promise<any>} the first log line that does, past or future; rejects when the gateway ends without it
   */
  line(matches) {
    const found = this.lines.find(matches)
    if (found) return Promise.resolve(found)
    return new Promise((resolve, reject) => {
      this.#waiting.add({ matches, resolve })
      this.#closed.then(code =>
        reject(new Error(`the gateway ended with ${code}: ${this.lines.map(({ msg }) => msg).join('; ')}`)),
      )
    })
  }

  /**
   * Calls the server API.
   * @param {string} method
   * @param {object} [params]
   * @returns {Promise<any>} the parsed answer
   */
  async api(method, params = {}) {
    const answer = await fetch(`${this.url}/api/${method}`, {
      method: 'POST',
      headers: { 'X-API-Key': 'key' },
      body: JSON.stringify(params),
    })
    if (answer.status !== 200) throw new Error(`HTTP ${answer.status}`)
    return answer.json()
  }

  /** @returns {number[]} process ids of the workers that have begun to listen, in the order in which they did */
  get workerPids() {
    return this.lines.filter(({ msg }) => msg === 'worker listens').map(({ pid }) => pid)
  }

  /** @returns {Promise<{code: number | null, signal: string | null}>} */
  async stop() {
    this.process.kill('SIGTERM')
    const ended = await this.exited
    await rm(this.folder, { recursive: true, force: true })
    return ended
  }
}

/**
 * Starts a gateway and waits until every worker listens. It is stopped with the test.
 *
 * @param {any} t
 * @param {any} [config] over these: two workers, a free port of loopback, API key `key`, every origin, health, debug
 *   log, no pings for ten minutes (raw clients do not answer them), no refusals on a busy machine
 * @param {{args?: string[], env?: Record<string, string>, host?: {address: string, prefix: string[]}}} [options]
 *   `host`: where it runs, by its address and what comes before a command there (hosts/network.js)
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
  await gateway.line(({ msg }) => msg === 'halley listens')
  return gateway
}
