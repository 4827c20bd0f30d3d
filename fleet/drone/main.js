// The drone's one program: an agent, and the processes that it forks from the same file.

import { fork } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { Agent } from './agent.js'
import { EngineServer } from './child.js'
import { parseConfig } from './config.js'
import { lookAround } from './machine.js'

const ENGINE = '--engine'
const USAGE = 'usage: node FILE CONFIG.json [--check] | --help | --version'
/** A small young generation keeps what lives long in few pages; and garbage of a ramp is collected when it is over. */
const FLAGS = ['--max-semi-space-size=2', '--expose-gc']

// Filled in when it is packed.
const version = /** @type {any} */ (globalThis).HALLEY_VERSION ?? 'unpacked'
const [, program, file = '--help', ...more] = process.argv

/** @param {string} level @param {string} text */
const log = (level, text) => process.stdout.write(`${new Date().toISOString()} ${level} ${text}\n`)

/** @param {string} text @param {number} code */
function fail(text, code) {
  process.stderr.write(`drone: ${text}\n`)
  process.exit(code)
}

function beEngine() {
  const server = new EngineServer(() => globalThis.gc?.())
  /** @param {any} answer */
  const tell = answer => process.send?.(answer, () => {})
  process.on('message', message => server.take(/** @type {any} */ (message), tell))
  // Whoever ends the agent, and however: nobody loads a target without it.
  process.on('disconnect', () => process.exit())
  // They mean the agent, which ends this process in order.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {})
  // It ends by itself then, and writes where that was; this is for the controller.
  process.on('uncaughtExceptionMonitor', error => tell([0, null, error.message]))
}

async function beAgent() {
  let parsed
  try {
    parsed = parseConfig(readFileSync(file, 'utf8'))
  } catch (error) {
    return fail(`${file}: ${error.code ?? error.message}`, 2)
  }
  const { config, place } = parsed
  if (more.includes('--check'))
    return void process.stdout.write(`${JSON.stringify(lookAround(config.perProcess || undefined).facts)}\n`)
  const agent = new Agent(config, place, {
    version,
    log,
    onEnd: () => process.exit(),
    fork: () => fork(program, [ENGINE], { execArgv: FLAGS, serialization: 'advanced' }),
  })
  process.stdout.on('error', () => {})
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => agent.stop())
  if (statSync(file).mode & 0o077)
    agent.event('warn', `${file} can be read by other users; it has a secret in it`)
  await agent.start().catch(error => fail(error.message, 1))
}

if (file === ENGINE) process.connected && beEngine()
else if (file === '--version') process.stdout.write(`${version}\n`)
else if (file === '--help') process.stdout.write(`A load drone of Halley.\n${USAGE}\n`)
else if (file.startsWith('-') || more.some(option => option !== '--check')) fail(USAGE, 2)
else await beAgent()
