// Keeps a process for a run: `node gateway-main.js PATIENCE LOG COMMAND ARGS...` starts the command, its output goes to the file LOG, and
// ends it when standard input ends, which is also what happens when whoever started this was killed. What does not end by
// SIGTERM within PATIENCE ms is killed. Standard output has a line of JSON when it was started, and one when it has ended.

import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'

const [patience, log, command, ...args] = process.argv.slice(2)

/** @param {object} message */
const report = message => void process.stdout.write(`${JSON.stringify(message)}\n`)
// Nobody may be left to hear it.
process.stdout.on('error', () => {})

// A run's gateway is what its configuration says, and nothing else.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HALLEY_')))

const file = openSync(log, 'a')
const child = spawn(command, args, { stdio: ['ignore', file, file], env })
closeSync(file)

let asked = false
const end = () => {
  if (asked) return
  asked = true
  child.kill('SIGTERM')
  setTimeout(() => child.kill('SIGKILL'), Number(patience)).unref()
}

child.once('spawn', () => report({ pid: child.pid }))
child.once('error', error => {
  report({ error: error.message })
  process.exitCode = 1
  process.stdin.destroy()
})
child.once('exit', (code, signal) => {
  report({ code, signal, asked })
  process.stdin.destroy()
})
process.stdin.resume().once('end', end).once('close', end).once('error', end)
// Ctrl-C in a terminal reaches every process of the group; the runner says when it is time.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGHUP'])) process.on(signal, () => {})
process.on('SIGTERM', end)
