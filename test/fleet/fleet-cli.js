// `halley fleet` as users run it.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockOwner } from '../../fleet/controller/folder.js'
import { local } from '../../fleet/providers/local.js'
import { signal } from '../../fleet/providers/processes.js'
import { halley } from '../kit/cli.js'
import { bin } from '../kit/gateway.js'

/** @type {Set<string>} folders of fleets that may have a controller */
const running = new Set()

/** For tests that are ended before their teardown. Drones without a controller end by themselves. */
function killControllers() {
  for (const dir of running) {
    try {
      process.kill(Number.parseInt(readFileSync(join(dir, 'controller.lock'), 'utf8'), 10), 'SIGKILL')
    } catch {}
  }
  running.clear()
}
process.once('exit', killControllers)
for (const name of /** @type {const} */ (['SIGTERM', 'SIGALRM', 'SIGINT']))
  process.once(name, killControllers)

/** Runs `halley fleet` on a new folder. The teardown of the test kills controller and drones and removes the folder. */
export class FleetCli {
  /** @param {string} dir */
  constructor(dir) {
    this.dir = dir
  }

  /** @param {any} t @returns {Promise<FleetCli>} */
  static async create(t) {
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
    return this.result(this.spawn(args, env))
  }

  /**
   * Runs a command in this process, for commands that end by themselves.
   * @param {string[]} args
   * @returns {Promise<{code: number | undefined, stdout: string, stderr: string}>}
   */
  async runInProcess(args) {
    const { code, out, err } = await halley(['fleet', ...args], { env: { HALLEY_FLEET_DIR: this.dir } })
    return { code, stdout: out, stderr: err }
  }

  /**
   * @param {import('node:child_process').ChildProcessWithoutNullStreams} child
   * @returns {Promise<{code: number | null, stdout: string, stderr: string}>} resolves when the process has ended
   */
  result(child) {
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
   * @param {(snapshot: import('../../fleet/schema.js').FleetSnapshot) => boolean} condition
   * @returns {Promise<import('../../fleet/schema.js').FleetSnapshot>} the first snapshot that meets it
   * @throws {Error} `status --watch` ends before
   */
  until(condition) {
    const child = this.spawn(['status', '--json', '--watch'])
    let rest = ''
    return new Promise((resolve, reject) => {
      child.stdout.on('data', data => {
        const lines = `${rest}${data}`.split('\n')
        rest = lines.pop() ?? ''
        const found = lines.map(line => JSON.parse(line)).find(condition)
        if (found === undefined) return
        child.kill()
        resolve(found)
      })
      child.once('exit', code => reject(new Error(`fleet status --watch ended with ${code}`)))
    })
  }

  /** @returns {Promise<import('../../fleet/schema.js').Handle[]>} running drones */
  async drones() {
    const handles = await local.find('all', { dir: this.dir, flags: {} })
    return handles.filter(({ state }) => state !== 'gone')
  }

  /** @returns {Promise<number>} process id of the controller; 0: none runs */
  controller() {
    return lockOwner(this.dir)
  }
}
