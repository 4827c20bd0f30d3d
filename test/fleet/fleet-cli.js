// `halley fleet` as users run it.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { lockOwner } from '../../fleet/controller/folder.js'
import { local } from '../../fleet/providers/local.js'
import { signal } from '../../fleet/providers/processes.js'
import { main } from '../../src/cli/main.js'

const bin = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))

/** @type {Set<string>} folders of fleets that may have a controller */
const running = new Set()

/** A test that is ended from outside does not come to its teardown. Drones without a controller end by themselves. */
function endAll() {
  for (const dir of running) {
    try {
      process.kill(Number.parseInt(readFileSync(join(dir, 'controller.lock'), 'utf8'), 10), 'SIGKILL')
    } catch {}
  }
  running.clear()
}
process.once('exit', endAll)
for (const name of /** @type {const} */ (['SIGTERM', 'SIGALRM', 'SIGINT'])) process.once(name, endAll)

/** The commands on one folder, of which nothing is left after the test. */
export class FleetCli {
  /** @param {string} dir */
  constructor(dir) {
    this.dir = dir
  }

  /** @param {any} t @returns {Promise<FleetCli>} */
  static async make(t) {
    const cli = new FleetCli(await mkdtemp(join(tmpdir(), 'halley-cli-')))
    running.add(cli.dir)
    t.teardown(async () => {
      running.delete(cli.dir)
      const pid = await lockOwner(cli.dir)
      if (pid !== 0) process.kill(pid, 'SIGKILL')
      for (const { handle } of await cli.drones()) await signal(handle, 'SIGKILL')
      await rm(cli.dir, { recursive: true, force: true })
    })
    return cli
  }

  /**
   * @param {string[]} args
   * @param {Record<string, string>} [env]
   * @returns {import('node:child_process').ChildProcessWithoutNullStreams}
   */
  spawn(args, env = {}) {
    return spawn(process.execPath, [bin, 'fleet', ...args], {
      env: { ...process.env, HALLEY_FLEET_DIR: this.dir, ...env },
    })
  }

  /**
   * @param {string[]} args
   * @param {Record<string, string>} [env]
   * @returns {Promise<{code: number | null, stdout: string, stderr: string}>}
   */
  run(args, env) {
    return this.done(this.spawn(args, env))
  }

  /**
   * The same without a process of its own, for what ends by itself.
   * @param {string[]} args
   * @returns {Promise<{code: number | undefined, stdout: string, stderr: string}>}
   */
  async say(args) {
    let [stdout, stderr] = ['', '']
    const code = await main(['fleet', ...args], {
      env: { ...process.env, HALLEY_FLEET_DIR: this.dir },
      cwd: process.cwd(),
      stdout: text => {
        stdout += text
      },
      stderr: text => {
        stderr += text
      },
    })
    return { code, stdout, stderr }
  }

  /**
   * @param {import('node:child_process').ChildProcessWithoutNullStreams} child
   * @returns {Promise<{code: number | null, stdout: string, stderr: string}>} when it has ended
   */
  done(child) {
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', data => {
      stdout += data
    })
    child.stderr.on('data', data => {
      stderr += data
    })
    return new Promise(resolve => child.once('close', code => resolve({ code, stdout, stderr })))
  }

  /** @returns {Promise<import('../../fleet/schema.js').FleetSnapshot>} */
  async status() {
    const { stdout, stderr } = await this.run(['status', '--json'])
    if (stdout === '') throw new Error(stderr)
    return JSON.parse(stdout)
  }

  /**
   * @param {(snapshot: import('../../fleet/schema.js').FleetSnapshot) => boolean} good
   * @returns {Promise<import('../../fleet/schema.js').FleetSnapshot>} the first one that is
   */
  until(good) {
    const child = this.spawn(['status', '--json', '--watch'])
    let rest = ''
    return new Promise((resolve, reject) => {
      child.stdout.on('data', data => {
        const lines = `${rest}${data}`.split('\n')
        rest = lines.pop() ?? ''
        const found = lines.map(line => JSON.parse(line)).find(good)
        if (found === undefined) return
        child.kill()
        resolve(found)
      })
      child.once('exit', () => reject(new Error('the watch has ended')))
    })
  }

  /** @returns {Promise<import('../../fleet/schema.js').Handle[]>} processes that run */
  async drones() {
    const found = await local.find('all', { dir: this.dir, flags: {} })
    return found.filter(({ state }) => state !== 'gone')
  }

  /** @returns {Promise<number>} 0: there is none */
  controller() {
    return lockOwner(this.dir)
  }
}
