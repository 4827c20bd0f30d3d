// Runs programs of the cells, one at a time: on this machine, and in a Debian root (cell.sh).

import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** First process of the namespaces: all others and the mounts end with it. */
export const NAMESPACES = ['--mount', '--pid', '--ipc', '--fork', '--kill-child']
/** Files and variables with the settings of mirrors and registries. */
const NETWORK_FILES = ['/etc/resolv.conf', '/etc/ssl/certs/ca-certificates.crt', '/etc/pip.conf']
const NETWORK_VARIABLES =
  /^(?:(?:https?|no|all)_proxy|npm_config_registry|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE|PIP_(?:CERT|PROXY|(?:EXTRA_)?INDEX_URL|TRUSTED_HOST))$/i
const KEPT_OUTPUT = 10_000_000

/**
 * @typedef {object} Ended a program
 * @property {number} status exit status
 * @property {string} output its last 10 MB
 */

/**
 * @typedef {object} Command in a root
 * @property {string} root folder
 * @property {string} [lower] folder that `root` shows, when `upper` gets what changes
 * @property {string} [upper]
 * @property {string} user `uid:gid`
 * @property {string} home
 * @property {boolean} [network] that of this machine; else only loopback
 * @property {string} log file that gets the output, too
 * @property {string} command for bash
 * @property {Record<string, string>} [env]
 * @property {Record<string, string>} [binds] paths here -> paths in the root, read only
 * @property {Record<string, string>} [writable] the same, writable
 * @property {boolean} [show] print the output
 */

export class Processes {
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #running
  #stopped = false

  /**
   * @param {string} program
   * @param {string[]} args
   * @param {{log: string, env?: NodeJS.ProcessEnv, show?: boolean}} options as of `Command`
   * @returns {Promise<Ended>} never once `stop` was called
   */
  async run(program, args, { log, env = process.env, show = false }) {
    const child = spawn(program, args, { env, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    this.#running = child
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', text => {
        output = (output + text).slice(-KEPT_OUTPUT)
        appendFileSync(log, text)
        if (show) process.stdout.write(text)
      })
    /** @type {number} */
    const status = await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', code => resolve(code ?? 1))
    })
    this.#running = undefined
    return this.#stopped ? new Promise(() => {}) : { status, output }
  }

  /**
   * As `run`.
   * @param {string} program
   * @param {string[]} args
   * @param {{log: string, env?: NodeJS.ProcessEnv}} options
   * @returns {Promise<string>} its output
   * @throws {Error} when it fails
   */
  async must(program, args, options) {
    const { status, output } = await this.run(program, args, options)
    if (status === 0) return output
    const end = output.trimEnd().split('\n').slice(-15).join('\n  ')
    throw new Error(`${program} ended with status ${status} (${options.log}):\n  ${end}`)
  }

  /** @param {Command} command @returns {Promise<Ended>} */
  inRoot({ root, lower = '', upper = '', user, home, network, log, command, env, binds, writable, show }) {
    const variables = Object.entries(process.env).filter(([name]) => network && NETWORK_VARIABLES.test(name))
    const files = [...NETWORK_FILES, ...variables.map(([, value]) => value ?? '')].filter(
      file => network && file.startsWith('/') && existsSync(file) && statSync(file).isFile(),
    )
    const inside = {
      PATH: '/opt/node/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: home,
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      ...Object.fromEntries(variables),
      ...env,
    }
    const lines = (/** @type {Record<string, string>} */ paths) =>
      Object.entries(paths)
        .map(pair => `${pair.join('\t')}\n`)
        .join('')
    // No process outlives this program.
    const args = [
      ...['--pdeathsig', 'KILL', 'unshare', ...NAMESPACES],
      ...(network ? [] : ['--net']),
      ...['bash', fileURLToPath(new URL('cell.sh', import.meta.url)), root, user],
      ...['/usr/bin/env', '-i', ...Object.entries(inside).map(([name, value]) => `${name}=${value}`)],
      ...['bash', '-c', `set -o pipefail; cd; ${command}`],
    ]
    const outside = {
      PATH: process.env.PATH,
      CELL_LOWER: lower,
      CELL_UPPER: upper,
      CELL_BINDS: lines({ ...Object.fromEntries(files.map(file => [file, file])), ...binds }),
      CELL_WRITABLE_BINDS: lines(writable ?? {}),
    }
    return this.run('setpriv', args, { log, show, env: outside })
  }

  /**
   * Kills the running program.
   * @returns {Promise<void>} once it has ended
   */
  async stop() {
    this.#stopped = true
    const child = this.#running
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = new Promise(resolve => child.once('close', resolve))
    // The process group: debootstrap has child processes.
    process.kill(-child.pid, 'SIGKILL')
    await closed
  }
}
