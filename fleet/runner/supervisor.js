// Supervises a process of a run: `node supervisor.js TIMEOUT LOG COMMAND ARGS...` starts the command with its
// output in the file LOG. When standard input ends (the parent exited or was killed), it sends SIGTERM, and after
// TIMEOUT ms SIGKILL. It writes a line of JSON to standard output at the start and one at the end.

import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'

const [timeout, log, command, ...args] = process.argv.slice(2)

/** @param {object} message */
const report = message => void process.stdout.write(`${JSON.stringify(message)}\n`)
// The parent may be gone.
process.stdout.on('error', () => {})

// A run's gateway depends only on its configuration file.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HALLEY_')))

const file = openSync(log, 'a')
const child = spawn(command, args, { stdio: ['ignore', file, file], env })
closeSync(file)

let requested = false
const end = () => {
  if (requested) return
  requested = true
  child.kill('SIGTERM')
  setTimeout(() => child.kill('SIGKILL'), Number(timeout)).unref()
}

child.once('spawn', () => report({ pid: child.pid }))
child.once('error', error => {
  report({ error: error.message })
  process.exitCode = 1
  process.stdin.destroy()
})
child.once('exit', (code, signal) => {
  report({ code, signal, requested })
  process.stdin.destroy()
})
process.stdin.resume().once('end', end).once('close', end).once('error', end)
// Ctrl-C reaches the whole process group; the runner decides when to exit.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGHUP'])) process.on(signal, () => {})
process.on('SIGTERM', end)
