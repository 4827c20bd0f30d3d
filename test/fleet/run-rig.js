// `halley fleet run` in its own process and folder, both removed after the test.

import { spawn } from 'node:child_process'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { signal } from '../../fleet/runner/proc.js'
import { tempDir } from '../kit/folders.js'
import { bin } from '../kit/gateway.js'
import { until } from '../kit/wait.js'

/** @param {string} text @returns {Promise<number[]>} processes with it in their command line, or in that folder */
export async function processesWith(text) {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(
    pids.map(async pid => {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '')
      return (line.includes(text) || cwd.startsWith(text)) && pid !== process.pid ? pid : 0
    }),
  )
  return found.filter(pid => pid > 0)
}

/** A running or ended run. */
export class CliRun {
  stdout = ''
  stderr = ''

  /** @param {string[]} args of `halley fleet` @param {string} dir */
  constructor(args, dir) {
    this.dir = dir
    this.out = join(dir, 'out')
    this.child = spawn(process.execPath, [bin, 'fleet', ...args], { cwd: dir })
    this.child.stdout.on('data', data => {
      this.stdout += data
    })
    this.child.stderr.on('data', data => {
      this.stderr += data
    })
    /** @type {Promise<number | null>} exit status */
    this.code = new Promise(resolve => this.child.once('close', resolve))
  }

  /** @param {any} t @param {...string} args of `halley fleet run`, without `--out` @returns {Promise<CliRun>} */
  static async start(t, ...args) {
    const dir = tempDir(t)
    const run = new CliRun(['run', ...args, '--out', join(dir, 'out')], dir)
    t.teardown(async () => {
      run.child.kill('SIGKILL')
      for (const pid of await processesWith(dir)) signal(pid, 'SIGKILL')
    })
    return run
  }

  /** @param {RegExp} pattern @returns {Promise<unknown>} when standard error has it; rejects when the run ends before */
  printed(pattern) {
    const ended = this.code.then(code => Promise.reject(new Error(`it ended with ${code}: ${this.stderr}`)))
    return Promise.race([until(() => pattern.test(this.stderr)), ended])
  }

  /** @returns {Promise<import('../../fleet/runner/result.js').RunResult>} */
  async result() {
    return JSON.parse(await readFile(join(this.out, 'result.json'), 'utf8'))
  }

  report() {
    return readFile(join(this.out, 'report.html'), 'utf8')
  }
}
