// `halley fleet` in separate processes.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { lockOwner } from '../../fleet/controller/folder.js'
import { local } from '../../fleet/providers/local.js'
import { halley } from '../kit/cli.js'
import { bin } from '../kit/gateway.js'
import { fleetFolder } from './controller/fleet-rig.js'

/** Folders of fleets that may have a controller. @type {Set<string>} */
const running = new Set()

/** For tests that end before their teardown. Drones without a controller exit automatically. */
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
    const cli = new FleetCli(await fleetFolder(t))
    running.add(cli.dir)
    t.teardown(async () => {
      running.delete(cli.dir)
      const pid = await lockOwner(cli.dir)
      if (pid !== 0) process.kill(pid, 'SIGKILL')
    })
    return cli
  }

  /** @param {string[]} args @param {Record<string, string>} [env] */
  spawn(args, env = {}) {
    return spawn(process.execPath, [bin, 'fleet', ...args], {
      env: { ...process.env, HALLEY_FLEET_DIR: this.dir, ...env },
    })
  }

  /** @param {string[]} args @param {Record<string, string>} [env] */
  run(args, env) {
    return this.result(this.spawn(args, env))
  }

  /** Runs a command that ends by itself in this process. @param {string[]} args */
  async runInProcess(args) {
    const { code, out, err } = await halley(['fleet', ...args], { env: { HALLEY_FLEET_DIR: this.dir } })
    return { code, stdout: out, stderr: err }
  }

  /**
   * @param {import('node:child_process').ChildProcessWithoutNullStreams} child
   * @returns {Promise<{code: number | null, stdout: string, stderr: string}>} resolves when the process has ended
   */
  result(child) {
    const output = { stdout: '', stderr: '' }
    for (const name of /** @type {const} */ (['stdout', 'stderr']))
      child[name].on('data', data => {
        output[name] += data
      })
    return new Promise(resolve => child.once('close', code => resolve({ code, ...output })))
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
  async until(condition) {
    const child = this.spawn(['status', '--json', '--watch'])
    for await (const line of createInterface({ input: child.stdout })) {
      const snapshot = JSON.parse(line)
      if (!condition(snapshot)) continue
      child.kill()
      return snapshot
    }
    throw new Error('fleet status --watch has ended')
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
