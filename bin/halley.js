#!/usr/bin/env node
import { main } from '../src/cli/main.js'

// `halley config doc | head` ends early, and that is no fault.
process.stdout.on('error', error => {
  if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EPIPE') throw error
  process.exit(0)
})

const code = await main(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdout: text => void process.stdout.write(text),
  stderr: text => void process.stderr.write(text),
})
if (code !== undefined) process.exitCode = code
// A gateway that failed while starting may have left something open.
if (code === 1) process.exit()
