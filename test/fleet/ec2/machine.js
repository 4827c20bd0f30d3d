// A machine simulated in a folder: the files of its user data, and its service.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'yaml'
import { userData } from '../../../fleet/providers/ec2/user-data.js'
import { tempDir } from '../../kit/folders.js'
import { until } from '../../kit/wait.js'

/**
 * @param {Partial<import('../../../fleet/providers/ec2/user-data.js').Boot>} some
 * @returns {Promise<{size: number, text: string, config: any}>} size: bytes of the user data
 */
export async function cloudConfigOf(some) {
  const packed = await userData({
    prefix: 'd',
    first: 1,
    ends: Date.now() + 7_200_000,
    nodeVersion: '22',
    nodeUrl: 'https://nodejs.org/dist',
    memory: 2 * 2 ** 30,
    sha256: '0'.repeat(64),
    .../** @type {any} */ (some),
  })
  const text = gunzipSync(packed).toString()
  return { size: packed.length, text, config: parse(text) }
}

/**
 * @param {string} root
 * @param {any} config a cloud-config
 */
export async function writeFiles(root, config) {
  for (const { path, permissions = '0644', content } of config.write_files) {
    await mkdir(join(root, dirname(path)), { recursive: true })
    await writeFile(join(root, path), content)
    await chmod(join(root, path), Number.parseInt(permissions, 8))
  }
}

/** @param {any} config a cloud-config @param {string} end of a path @returns {string} the file's text */
export const fileOf = (config, end) =>
  config.write_files.find((/** @type {any} */ { path }) => path.endsWith(end)).content

/**
 * The service's command line, as systemd makes it of the unit.
 *
 * @param {string} root
 * @param {any} config
 * @param {{credentials: string, state: string}} folders
 * @returns {string[]}
 */
export function commandOf(root, config, { credentials, state }) {
  const [, line] = /^ExecStart=(.*)$/m.exec(fileOf(config, 'halley-drone.service')) ?? ['', '']
  return line
    .replace(/\$\{CREDENTIALS_DIRECTORY\}/g, credentials)
    .replace(/\$\{STATE_DIRECTORY\}/g, state)
    .split(' ')
    .map(word => (word.startsWith('/opt/') ? join(root, word) : word))
}

/** The bootstrap of a machine, and in time its drone. */
export class Machine {
  output = ''
  #command
  /** @type {import('node:child_process').ChildProcess | null} */
  #child = null
  /** @type {Promise<any>} */
  #ended = Promise.resolve()

  /**
   * @param {string} root
   * @param {string[]} command
   */
  constructor(root, command) {
    this.root = root
    this.state = join(root, 'state')
    this.#command = command
  }

  /**
   * @param {any} t
   * @param {any} drone its configuration
   * @param {string} sha256 of the program that is pinned
   * @returns {Promise<Machine>} not started yet
   */
  static async make(t, drone, sha256) {
    const root = tempDir(t)
    const { config } = await cloudConfigOf({ config: drone, sha256 })
    await writeFiles(root, config)
    await writeFile(join(root, 'drone.json'), JSON.stringify(drone), { mode: 0o600 })
    const [, ...args] = commandOf(root, config, { credentials: root, state: join(root, 'state') })
    const machine = new Machine(root, [process.execPath, ...args])
    t.teardown(() => machine.kill())
    return machine
  }

  /** With an empty environment. */
  start() {
    const [program, ...args] = this.#command
    const child = spawn(program, args, { cwd: '/', env: {}, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', text => {
        this.output += text
      })
    this.#child = child
    this.#ended = once(child, 'close')
  }

  async kill() {
    this.#child?.kill('SIGKILL')
    await this.#ended
  }

  /** @param {RegExp} words @returns {Promise<RegExpExecArray>} when they are in its output */
  printed(words) {
    return until(() => words.exec(this.output))
  }
}
