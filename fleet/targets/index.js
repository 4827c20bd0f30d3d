// Servers that a run can load instead of, or in turn with, a gateway: bare libraries and other products, as controls.
//
//   controls.js, socket-io.js   programs of one process; nchan.js   configuration of nginx
//
// May import: runner/processes.js and runner/proc.js. Promises: a server listens on a free loopback port, ends with the
// runner, and has the same load as a gateway.

import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ServerProcess, startServer } from '../runner/processes.js'
import { RunError } from '../runner/target.js'
import { findNchan, nchanCommand } from './nchan.js'

/** @import { Transport } from '../schema.js' */
/** @import { Command } from '../runner/processes.js' */

/** @typedef {{folder: string, port: number, key: string, workers: number}} ControlOptions `workers`: of nchan */
/**
 * @typedef {{summary: string, transport: Transport, via: 'single' | 'nchan', command: (options: ControlOptions) =>
 *   Promise<Command>}} Control `via`: how messages are published; `command` throws RunError if it is not installed
 */

const API_KEY = 'key'
const SOCKET_IO = '4.8.4'

/** @param {string} file @param {...string} args @returns {Command} */
const node = (file, ...args) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL(file, import.meta.url)), ...args],
})

/** @returns {string | null} folder whose node_modules has Socket.IO; null: none */
export const socketIoFolder = () =>
  ['.', 'node_modules/.cache/halley-peers']
    .map(folder => resolve(folder))
    .find(folder => {
      try {
        return createRequire(join(folder, 'package.json')).resolve('socket.io')
      } catch {
        return false
      }
    }) ?? null

/** @param {string} summary @param {'uws' | 'ws'} library @returns {Control} */
const bare = (summary, library) => ({
  summary,
  transport: 'uni_bare',
  via: 'single',
  command: async ({ port }) => node('controls.js', library, String(port)),
})

/** @type {Readonly<Record<string, Control>>} */
export const CONTROLS = Object.freeze({
  uws: bare('bare uWebSockets.js', 'uws'),
  ws: bare('bare ws', 'ws'),
  'socket.io': {
    summary: 'Socket.IO, which must be installed',
    transport: 'uni_socket_io',
    via: 'single',
    async command({ port }) {
      const folder = socketIoFolder()
      if (folder === null)
        throw new RunError(
          `Socket.IO is not installed (npm install --prefix node_modules/.cache/halley-peers socket.io@${SOCKET_IO})`,
        )
      return node('socket-io.js', String(port), folder)
    },
  },
  nchan: {
    summary: 'nchan in nginx, which must be installed',
    transport: 'uni_bare',
    via: 'nchan',
    async command(options) {
      const nchan = findNchan()
      if (nchan === null)
        throw new RunError('nchan is not installed (Debian: apt-get install nginx-light libnginx-mod-nchan)')
      return await nchanCommand(nchan.module, options)
    },
  },
})

/** `cmd: PROGRAM ARGS` starts any server that speaks the Centrifuge protocol. */
const COMMAND = /^cmd:\s*(.+)$/s

/** @param {string} name @returns {boolean} */
export const isControl = name => Object.hasOwn(CONTROLS, name) || COMMAND.test(name)

/** @param {string} name of a control, or `cmd: PROGRAM ARGS` with `{port}` and `{key}` @returns {Control} */
export function controlOf(name) {
  const [, text] = COMMAND.exec(name) ?? []
  if (text === undefined && !Object.hasOwn(CONTROLS, name)) throw new RunError(`unknown server "${name}"`)
  if (text === undefined) return CONTROLS[name]
  if (!text.includes('{port}')) throw new RunError(`"${name}" does not contain {port}`)
  return {
    summary: text,
    transport: 'websocket',
    via: 'single',
    async command({ port, key }) {
      const filled = text.replaceAll('{port}', String(port)).replaceAll('{key}', key)
      return { command: '/bin/sh', args: ['-c', `exec ${filled}`] }
    },
  }
}

/** @param {string} name see `controlOf` @param {{out: string, workers: number}} options `out`: folder for its files */
export function startControl(name, { out, workers }) {
  const control = controlOf(name)
  return startServer(
    async port =>
      new ServerProcess({
        name,
        port,
        apiKey: API_KEY,
        log: join(out, 'server.log'),
        command: await control.command({ folder: out, port, key: API_KEY, workers }),
      }),
  )
}
