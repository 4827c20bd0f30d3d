#!/usr/bin/env node
import { main } from '../src/cli/main.js'

// A reader may close the pipe early, as in `halley config doc | head`: that is no error.
process.stdout.on('error', error => {
  if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EPIPE') throw error
  process.exit(0)
})

const code = await main(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdout: text => void process.stdout.write(text),
  stderr: text => void process.stderr.write(text),
  terminal: process.stdout.isTTY,
  questions:
    process.stdin.isTTY && process.stdout.isTTY
      ? async () => (await import('../src/cli/questions.js')).openQuestions()
      : undefined,
})
// No code: the gateway is running.
if (code !== undefined) process.exitCode = code
// A gateway that failed to start may have left handles open, which would keep the process alive.
if (code === 1) process.exit()
