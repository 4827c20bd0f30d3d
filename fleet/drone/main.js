// A load drone: opens connections to a target and publishes, as its controller requests.
//
//   main.js          the program: the agent, and the engine processes, which the agent forks from the same file
//   agent.js         connection to the controller; process-pool.js: the processes; engine-process.js: one of them
//   status-server.js the HTTP status port, if configured
//   engine/          connections of one process, checks of their messages, publishers; transport/: bytes in and out
//   bootstrap.js     downloads this program on a machine with nothing but Node.js
//
// May import: Node.js, fleet/link, fleet/statistics, fleet/channel-template.js, and files of src/ without dependencies:
// a remote machine gets this program's sources and no packages (fleet/program.js).
// Promises: it connects only to targets allowed by its configuration, counts every message once, and stops its load
// without a controller.

import { fork } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { escapeControls } from '../../src/base/terminal-text.js'
import { packageVersion } from '../../src/base/version.js'
import { Agent } from './agent.js'
import { parseConfig } from './config.js'
import { runEngine } from './engine-process.js'
import { machineFacts } from './machine.js'

const ENGINE = '--engine'
const HELP = `Usage: node FILE CONFIG.json [--check]

Runs a Halley load drone for the controller named in CONFIG.json.

      --check     check the configuration, print the capacity of this machine, and exit
  -h, --help      print this text
  -V, --version   print the version
`
/** A small young generation wastes few pages on long-lived objects; the engine collects garbage after a ramp. */
const ENGINE_FLAGS = ['--max-semi-space-size=2', '--expose-gc']

const version = packageVersion()
/** `file`: path of the configuration, or an option instead of it. */
const [, program, file = '--help', ...options] = process.argv
const unknownOption = file.startsWith('-') ? file : options.find(option => option !== '--check')

/** @param {string} text @param {number} code exit status @returns {never} */
function fail(text, code) {
  process.stderr.write(`drone: ${escapeControls(text)}\n`)
  process.exit(code)
}

function readConfig() {
  try {
    return parseConfig(readFileSync(file, 'utf8'))
  } catch (error) {
    return fail(`${file}: ${error.message}`, 2)
  }
}

async function runAgent() {
  const config = readConfig()
  if (options.includes('--check'))
    return void process.stdout.write(`${JSON.stringify(machineFacts(config.perProcess))}\n`)
  const agent = new Agent(config, {
    version,
    log: (level, text) =>
      process.stdout.write(`${new Date().toISOString()} ${level} ${escapeControls(text)}\n`),
    onEnd: () => process.exit(),
    fork: () => fork(program, [ENGINE], { execArgv: ENGINE_FLAGS, serialization: 'advanced' }),
  })
  process.stdout.on('error', () => {})
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => agent.stop())
  if (statSync(file).mode & 0o077)
    agent.report('warn', `${file} contains the secret and is readable by other users: chmod 600 ${file}`)
  await agent.start().catch(error => fail(error.message, 1))
}

// An engine without an agent (started manually, or orphaned early) exits immediately.
if (file === ENGINE) process.connected && runEngine(process)
else if (file === '--version' || file === '-V') process.stdout.write(`${version}\n`)
else if (file === '--help' || file === '-h') process.stdout.write(HELP)
else if (unknownOption !== undefined) fail(`unknown option ${unknownOption}\n\n${HELP}`, 2)
else await runAgent()
