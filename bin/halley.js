#!/usr/bin/env node
// Runs the command line. Uses the syntax of Node.js 12, and imports nothing before the version check: an older Node.js
// prints one line instead of a syntax error.

const OLDEST = 20

if (Number(process.versions.node.split('.')[0]) < OLDEST) {
  process.stderr.write(
    `halley: requires Node.js ${OLDEST} or newer, found ${process.versions.node}; Node.js 24 is recommended\n`,
  )
  process.exitCode = 1
} else {
  run()
}

async function run() {
  // A reader may close the pipe early, as in `halley config doc | head`.
  process.stdout.on('error', error => {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EPIPE') throw error
    process.exit(0)
  })
  const { main } = await import('./main.js')
  const code = await main(process.argv.slice(2), {
    env: process.env,
    cwd: process.cwd(),
    stdout: text => void process.stdout.write(text),
    stderr: text => void process.stderr.write(text),
    terminal: process.stdout.isTTY === true,
    questions:
      process.stdin.isTTY && process.stdout.isTTY
        ? async () => (await import('../src/cli/questions.js')).openQuestions()
        : undefined,
  })
  // No code: the gateway is running.
  if (code !== undefined) process.exitCode = code
  // Handles of a gateway that failed to start would keep the process alive.
  if (code === 1) process.exit()
}
