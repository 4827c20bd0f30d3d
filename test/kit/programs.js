// Starts programs, and kills them at the end of the test.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'

/** Timeout of a program, ms. */
const TIMEOUT = 480_000

/**
 * Runs a program to its end.
 * @param {any} t @param {string} command @param {string[]} args
 * @param {{cwd?: string, env?: Record<string, string | undefined>}} [options] `env`: variables to add; undefined: unset
 * @returns {Promise<{code: number, stdout: string, stderr: string, output: string}>} `output`: both
 */
export async function run(t, command, args, { cwd, env = {} } = {}) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT,
    killSignal: 'SIGKILL',
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  return { code, stdout, stderr, output: stdout + stderr }
}

/**
 * Starts a Node.js program.
 * @param {any} t @param {string} file @param {Record<string, string>} env variables to add
 * @returns {Promise<{child: import('node:child_process').ChildProcess, line: string}>} after its first line
 */
export async function startProgram(t, file, env) {
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return { child, line }
}
