// The `halley` command, in this process or in a new one.

import { execFile } from 'node:child_process'
import { main } from '../../bin/main.js'
import { bin } from './gateway.js'

/** @typedef {{code: number, out: string, err: string}} Result */

/** The variables of this process without Halley's. @param {Record<string, string>} [env] more */
export const environment = env => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HALLEY_'))),
  ...env,
})

/**
 * Runs a command in this process.
 * @param {string[]} args @param {{env?: Record<string, string>, cwd?: string, terminal?: boolean}} [options]
 * @returns {Promise<Result>}
 */
export async function halley(args, { env = {}, cwd = process.cwd(), terminal = false } = {}) {
  const output = { out: '', err: '' }
  const code = await main(args, {
    env: environment(env),
    cwd,
    terminal,
    stdout: text => void (output.out += text),
    stderr: text => void (output.err += text),
  })
  return { code: code ?? 0, ...output }
}

/**
 * Runs a command in a new process.
 * @param {string[]} args @param {{env?: Record<string, string>, cwd?: string}} [options] @returns {Promise<Result>}
 */
export const spawnHalley = (args, { env, cwd } = {}) =>
  new Promise(resolve => {
    execFile(process.execPath, [bin, ...args], { cwd, env: environment(env) }, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    )
  })
