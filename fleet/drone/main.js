// The drone's one program: an agent, and the processes that it forks from the same file.

import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Agent } from './agent.js'
import { serveEngine } from './child.js'
import { parseConfig } from './config.js'

const ENGINE = '--engine'
/** A small young generation keeps what lives long in few pages; and garbage of a ramp is collected when it is over. */
const FLAGS = ['--max-semi-space-size=2', '--expose-gc']

// Filled in when it is packed.
const version = /** @type {any} */ (globalThis).HALLEY_VERSION ?? 'unpacked'
const [, program, file = '--help'] = process.argv
const end = () => process.exit()

function beEngine() {
  // That the agent is gone is known by the end of the line.
  const tell = (/** @type {string} */ kind, /** @type {any} */ value, then = () => {}) =>
    process.send?.([kind, value], then)
  process.once('message', (/** @type {any} */ launch) => {
    const take = serveEngine(launch, tell, () => globalThis.gc?.(), end)
    process.on('message', message => take(/** @type {any} */ (message)))
  })
  // Whoever ends the agent, and however: nobody loads a target without it.
  process.on('disconnect', end)
  // They mean the agent, which ends this process in order.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {})
  // It ends by itself then, and writes where that was; this is for the controller.
  process.on('uncaughtExceptionMonitor', error => tell('fault', error.message))
}

async function beAgent() {
  const agent = new Agent(parseConfig(readFileSync(file, 'utf8')), {
    version,
    log: text => process.stdout.write(`${new Date().toISOString()} ${text}\n`),
    onEnd: end,
    fork: () => fork(program, [ENGINE], { execArgv: FLAGS, serialization: 'advanced' }),
  })
  process.stdout.on('error', () => {})
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => agent.stop())
  await agent.start()
}

if (file === ENGINE) process.connected && beEngine()
else if (/^--(help|version)$/.test(file))
  process.stdout.write(`Halley ${version}: a load drone. usage: node FILE CONFIG.json\n`)
else
  await beAgent().catch(error => {
    process.stderr.write(`drone: ${file}: ${error.message}\n`)
    process.exit(2)
  })
