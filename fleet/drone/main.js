// A load drone: holds connections to a target and publishes, as its controller requests.
//
//   main.js          the program: the agent, and the engine processes that it forks from the same file
//   agent.js         connection to the controller; process-pool.js: the processes; engine-process.js: one of them
//   engine/          connections of one process, what they receive and check, publishers; transport/: bytes in and out
//   bootstrap.js     downloads this program on a machine that has nothing but Node.js
//
// May import: Node.js, fleet/link, fleet/statistics and fleet/channel-template.js: a machine gets only these files.
// Promises: it connects to nothing that its configuration does not allow, counts every message once, and stops its load
// without a controller.

import { fork } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { packageVersion } from '../../src/version.js'
import { Agent } from './agent.js'
import { parseConfig } from './config.js'
import { runEngine } from './engine-process.js'
import { machineFacts } from './machine.js'

const ENGINE = '--engine'
const HELP = `Usage: node FILE CONFIG.json [--check]

A load drone of Halley: it does what the controller says that the configuration names.

      --check     prints what this machine can hold, or what is wrong with the configuration, and ends
  -h, --help      this text
  -V, --version   the version
`
/** A small young generation keeps long-lived objects in few pages; garbage of a ramp is collected when it is over. */
const FLAGS = ['--max-semi-space-size=2', '--expose-gc']

const version = packageVersion()
const [, program, file = '--help', ...more] = process.argv

/** @param {string} text @param {number} code */
function fail(text, code) {
  process.stderr.write(`drone: ${text}\n`)
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
  const config = /** @type {ReturnType<typeof parseConfig>} */ (readConfig())
  if (more.includes('--check'))
    return void process.stdout.write(`${JSON.stringify(machineFacts(config.perProcess))}\n`)
  const agent = new Agent(config, {
    version,
    log: (level, text) => process.stdout.write(`${new Date().toISOString()} ${level} ${text}\n`),
    onEnd: () => process.exit(),
    fork: () => fork(program, [ENGINE], { execArgv: FLAGS, serialization: 'advanced' }),
  })
  process.stdout.on('error', () => {})
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => agent.stop())
  if (statSync(file).mode & 0o077)
    agent.report('warn', `${file} can be read by other users, and has the secret in it: chmod 600 ${file}`)
  await agent.start().catch(error => fail(`cannot listen on ${config.listen}: ${error.message}`, 1))
}

if (file === ENGINE) process.connected && runEngine(process)
else if (file === '--version' || file === '-V') process.stdout.write(`${version}\n`)
else if (file === '--help' || file === '-h') process.stdout.write(HELP)
else if (file.startsWith('-') || more.some(option => option !== '--check'))
  fail(
    `unknown option ${file.startsWith('-') ? file : more.find(option => option !== '--check')}\n\n${HELP}`,
    2,
  )
else await runAgent()
