// Finds a gateway of this user by its stats socket.

import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { COMMAND } from '../base/version.js'
import { listSockets } from '../metrics/socket-path.js'
import { UsageError } from './args.js'

/** @import { StatsCommand } from '../metrics/schema.js' */
/** @import { Io } from './command.js' */

/**
 * @param {string} name of the command, for examples @param {string | undefined} target path or port
 * @param {Readonly<Record<string, string | undefined>>} env
 * @param {string} none fault if there is no gateway
 * @returns {Promise<{path: string} | {fault: string}>}
 * @throws {UsageError}
 */
export async function findGateway(name, target, env, none) {
  if (/^[a-z]+:\/\/|^[^/]+:\d+$/i.test(target ?? ''))
    throw new UsageError(`"${target}" is not a path; a URL starts with http:// or https://`)
  if (target !== undefined && !/^\d+$/.test(target)) return { path: target }
  const found = await listSockets({ runtimeDir: env.XDG_RUNTIME_DIR })
  if (target === undefined && found.length === 1) return found[0]
  const wanted = found.find(({ port }) => port === Number(target))
  if (wanted !== undefined) return wanted
  if (found.length === 0) return { fault: none }
  const list = found.map(({ port, path }) => `\n  ${COMMAND} ${name} ${port}   (${path})`).join('')
  const what =
    target === undefined
      ? 'several gateways are running'
      : `no gateway listens on port ${target}; running gateways`
  return { fault: `${what}:${list}` }
}

/**
 * Returns one line, or ''.
 * @param {string} path of a stats socket @param {StatsCommand} command
 * @returns {Promise<string>}
 */
async function send(path, command) {
  const socket = connect(path)
  socket.write(`${JSON.stringify(command)}\n`)
  try {
    // Socket errors end the lines.
    const failed = new Promise((_, reject) => socket.on('error', reject))
    const answered = (async () => {
      for await (const line of createInterface({ input: socket })) {
        const message = JSON.parse(line)
        if (message.type !== 'done') continue
        if (message.error !== null) throw new Error(message.error)
        return message.text ?? ''
      }
      throw new Error('the gateway closed the connection without a response')
    })()
    return await Promise.race([answered, failed])
  } finally {
    socket.destroy()
  }
}

/**
 * Runs a command in the gateway, and returns the exit code.
 * @param {Io} io @param {string} name of the command line's command @param {string | undefined} target path or port
 * @param {StatsCommand} command @param {string} done printed at the end
 * @throws {UsageError}
 */
export async function commandGateway({ env, stdout, stderr }, name, target, command, done) {
  const found = await findGateway(name, target, env, 'no gateway of this user is running on this machine')
  let fault = 'fault' in found ? found.fault : ''
  if ('path' in found) {
    try {
      const text = await send(found.path, command)
      stdout(`${done}${text === '' ? '' : `: ${text}`}\n`)
      return 0
    } catch (error) {
      fault = error.code === undefined ? error.message : `${found.path}: ${error.code}`
    }
  }
  stderr(`halley ${name}: ${fault}\n`)
  return 1
}
