// What goes wrong between a machine's bootstrap and its controller: each fault is a line, and the next attempt is a
// good one.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import t from 'tap'
import { packProgram } from '../../fleet/program.js'
import { freePort } from '../kit/ports.js'
import { Machine } from './ec2/machine.js'

const program = await packProgram()
t.jobs = 3

/**
 * A controller without the checks of ours, and a machine that asks it.
 *
 * @param {any} t
 * @param {(socket: import('node:tls').TLSSocket, good: string, attempt: number) => void} answer `good`: the answer
 *   that is right
 * @param {{secret?: Buffer}} [options] key of the controller
 */
async function rig(t, answer, { secret } = {}) {
  const own = randomBytes(32)
  const good = (/** @type {number} */ ask) =>
    `${JSON.stringify({ type: 'answer', ask, result: program.bytes.toString('base64') })}\n`
  let attempts = 0
  const server = createServer({ minVersion: 'TLSv1.3', pskCallback: () => secret ?? own }, socket => {
    socket.on('error', () => {}).setEncoding('utf8')
    socket.once('data', text => {
      const message = JSON.parse(String(text).trim().split('\n')[0])
      if (message.type === 'program') answer(socket, good(message.ask), ++attempts)
    })
  })
  server.on('tlsClientError', () => {})
  const port = await freePort()
  const listening = async () => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  t.teardown(() => server.close())
  const drone = { id: 'd1', run: 'r1', secret: own.toString('hex'), allow: ['127.0.0.1'] }
  const machine = await Machine.make(t, { ...drone, controller: `127.0.0.1:${port}` }, program.sha256)
  t.teardown(() => machine.kill())
  return { machine, listening }
}

const arrived = new RegExp(`program ${program.sha256} has arrived`)
const other = Buffer.from('another program').toString('base64')

/** @type {[name: string, fault: RegExp, answer: (socket: import('node:tls').TLSSocket, good: string) => void][]} */
const FAULTS = [
  [
    'another program',
    /no program yet: the controller sent another program \(SHA-256 [0-9a-f]{64}\), which is refused; next attempt within 1 s/,
    (socket, good) => socket.end(good.replace(/"result":"[^"]*"/, `"result":"${other}"`)),
  ],
  ['half of it', /no program yet: .*closed/, (socket, good) => socket.end(good.slice(0, good.length / 2))],
  [
    'more than a line may have',
    /no program yet: a line of more than 16 MB/,
    socket => socket.write('a'.repeat(17 << 20)),
  ],
  ['garbage', /no program yet: a line that is not a JSON object/, socket => socket.write('garbage\n')],
  [
    'a number',
    /no program yet: the controller sent another program/,
    (socket, good) => socket.write(good.replace(/"result":"[^"]*"/, '"result":7')),
  ],
]

for (const [name, fault, answer] of FAULTS)
  t.test(`${name} is refused, and asked for again`, async t => {
    /** @type {string[]} */
    let kept = []
    const { machine, listening } = await rig(t, async (socket, good, attempt) => {
      if (attempt === 1) return answer(socket, good)
      kept = await readdir(machine.state).catch(() => [])
      socket.end(good)
    })
    await listening()
    machine.start()
    await machine.said(fault)
    await machine.said(arrived)
    t.strictSame(kept, [], 'nothing of it was kept')
    await machine.said(/Z \w+ has a controller/)
  })

t.test('a controller that is away is waited for', async t => {
  const { machine, listening } = await rig(t, (socket, good) => socket.end(good))
  machine.start()
  t.ok(await machine.said(/no program yet: .*ECONNREFUSED; next attempt within 1 s/))
  await listening()
  t.ok(await machine.said(arrived))
})

t.test('a controller with another secret gets no request', async t => {
  const { machine, listening } = await rig(t, () => t.fail('a request'), { secret: randomBytes(32) })
  await listening()
  machine.start()
  t.ok(await machine.said(/does not know the secret of this run; next attempt within 2 s/))
})

t.test('a disk that is full, and a stored program that is damaged', async t => {
  const { machine, listening } = await rig(t, (socket, good) => socket.end(good))
  await listening()
  const archive = join(machine.state, `${program.sha256}.json.gz`)
  await mkdir(machine.state, { recursive: true })
  await writeFile(archive, program.bytes.subarray(0, 100))
  await symlink('/dev/full', `${archive}.part`)
  machine.start()
  t.ok(await machine.said(/no program yet: ENOSPC: .*; next attempt within 1 s/))
  t.ok(await machine.said(arrived))
  t.strictSame(await readFile(archive), program.bytes)
})
