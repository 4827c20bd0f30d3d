#!/usr/bin/env node
import { main } from '../src/cli/main.js'

// A reader that closes the pipe early is no error: `halley config doc | head`.
process.stdout.on('error', error => {
  if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EPIPE') throw error
  process.exit(0)
})

const code = await main(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdout: text => void process.stdout.write(text),
  stderr: text => void process.stderr.write(text),
  questions:
    process.stdin.isTTY && process.stdout.isTTY
      ? async () => (await import('../src/cli/questions.js')).openQuestions()
      : undefined,
})
// Without a code the gateway runs.
if (code !== undefined) process.exitCode = code
// A gateway that failed to start may have left handles open.
if (code === 1) process.exit()
