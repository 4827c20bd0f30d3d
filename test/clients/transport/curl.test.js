// The curl commands of README.md print what it says.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { transports } from '../../guarantees/receivers.js'
import { startGateway } from '../../kit/gateway.js'
import { withoutProgram } from '../../kit/needs.js'
import { pause, until } from '../../kit/wait.js'
import { history, open } from '../session/support.js'

const README = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8')

/** @returns {string[]} the commands of the block below "Transports" */
function commands() {
  const section = README.slice(README.indexOf('## Transports'))
  const block = /```sh\n(.*?)```/s.exec(section)?.[1] ?? ''
  return block
    .replace(/^#.*$/gm, '')
    .split(/\n(?=curl )/)
    .map(command => command.trim())
    .filter(command => command !== '')
}

/** A shell command. */
class Running {
  text = ''
  over = false

  /** @param {any} t ends the command @param {string} command */
  constructor(t, command) {
    const child = spawn('sh', ['-c', `exec ${command}`], { stdio: ['ignore', 'pipe', 'ignore'] })
    child.stdout.on('data', chunk => {
      this.text += chunk
    })
    // At 'exit' some of the output may still be missing.
    this.ended = once(child, 'close').then(([code]) => {
      this.over = true
      return code
    })
    t.teardown(() => child.kill('SIGKILL'))
  }

  /** @param {RegExp} pattern @returns {Promise<void>} when the output matches */
  async prints(pattern) {
    await until(
      () => this.over || pattern.test(this.text),
      () => `${pattern} in ${this.text}`,
    )
    if (!pattern.test(this.text)) throw new Error(`ended without ${pattern}: ${this.text}`)
  }
}

t.test('the curl commands of the README work', { skip: withoutProgram('curl') }, async t => {
  const gateway = await startGateway(t, {
    workers: 1,
    ...transports,
    client: { allow_anonymous_connect_without_token: true },
    channel: { without_namespace: { ...open, ...history, force_recovery: true } },
  })
  const lines = commands()
  t.equal(lines.length, 6)
  const run = (/** @type {string} */ path) => {
    const line = lines.find(command => command.includes(path))
    if (!line) throw new Error(`README.md has no curl of ${path}`)
    return new Running(t, line.replaceAll('127.0.0.1:8000', `127.0.0.1:${gateway.port}`))
  }
  const publish = (/** @type {number} */ n) => gateway.api('publish', { channel: 'news', data: { n } })

  const stream = run('/connection/http_stream')
  await stream.prints(/"id":1,"connect":.*\n.*"id":2,"subscribe":/s)
  const sse = run('/connection/sse')
  await sse.prints(/^data: \{"id":1,"connect":\{"client":.*"session":"[-0-9a-f]{36}","node":/m)
  const uniSse = run('/connection/uni_sse')
  await uniSse.prints(/^data: \{"connect":.*"news":/m)
  const uniStream = run('/connection/uni_http_stream')
  await uniStream.prints(/^\{"connect":.*"news":/m)
  const poll = run('/connection/poll')
  await poll.prints(/^Halley-Session: .*"connect":/ims)
  t.equal(await poll.ended, 0)
  const uniPoll = run('/connection/uni_poll')
  // One of the publications finds the poll waiting.
  for (let n = 1; !uniPoll.over; n++) {
    await publish(n)
    await pause(50)
  }
  t.equal(await uniPoll.ended, 0)
  t.match(uniPoll.text, /"publications":\[\{"channel":"news","data":\{"n":\d+\},.*"cursor":"/)
  for (const running of [stream, uniSse, uniStream]) await running.prints(/"pub":\{"data":\{"n":1\}/)
  t.pass('all have received the publication')
})
