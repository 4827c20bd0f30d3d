// `halley fleet run` as users run it, each run in a folder of its own, and nothing of it left after the test.

import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bin } from '../kit/gateway.js'

/**
 * @param {string} text
 * @returns {Promise<number[]>} processes whose command line has it, or that work in that folder
 */
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

/** A run that is under way, or over. */
export class CliRun {
  stdout = ''
  stderr = ''
  /** @type {Set<() => void>} */
  #waiting = new Set()

  /**
   * @param {string[]} args behind `halley fleet`
   * @param {string} dir
   */
  constructor(args, dir) {
    this.dir = dir
    this.out = join(dir, 'out')
    this.child = spawn(process.execPath, [bin, 'fleet', ...args], { cwd: dir })
    this.child.stdout.on('data', data => {
      this.stdout += data
    })
    this.child.stderr.on('data', data => {
      this.stderr += data
      for (const look of this.#waiting) look()
    })
    /** @type {Promise<number | null>} exit status */
    this.code = new Promise(resolve => this.child.once('close', resolve))
  }

  /**
   * @param {any} t
   * @param {...string} args of `halley fleet run`; `--out` is given
   * @returns {Promise<CliRun>} that is under way
   */
  static async start(t, ...args) {
    const dir = await mkdtemp(join(tmpdir(), 'halley-run-test-'))
    const run = new CliRun(['run', ...args, '--out', join(dir, 'out')], dir)
    t.teardown(async () => {
      run.child.kill('SIGKILL')
      for (const pid of await processesWith(dir)) {
        try {
          process.kill(pid, 'SIGKILL')
        } catch {
          // It has ended meanwhile.
        }
      }
      await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
    })
    return run
  }

  /**
   * @param {RegExp} pattern
   * @returns {Promise<void>} when standard error has it; rejects when the run ends without it
   */
  said(pattern) {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!pattern.test(this.stderr)) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      this.code.then(code => reject(new Error(`it ended with ${code}: ${this.stderr}`)))
      look()
    })
  }

  /** @returns {Promise<import('../../fleet/runner/result.js').RunResult>} */
  async result() {
    return JSON.parse(await readFile(join(this.out, 'result.json'), 'utf8'))
  }

  report() {
    return readFile(join(this.out, 'report.html'), 'utf8')
  }
}
