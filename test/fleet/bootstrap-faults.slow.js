// Faults between a machine's bootstrap and its controller: each is a line, and the next attempt succeeds.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import t from 'tap'
import { freePort } from '../kit/ports.js'
import { until } from '../kit/wait.js'
import { machinesOf, program } from './bootstrap-machines.js'
import { fleetFolder, openFleet } from './controller/fleet-rig.js'
import { Machine } from './ec2/machine.js'

t.jobs = 3

/**
 * A scripted controller, and a machine that requests its program from it.
 * @param {any} t
 * @param {(socket: import('node:tls').TLSSocket, good: string, attempt: number) => void} answer `good`: the valid one
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

const arrived = new RegExp(`received program ${program.sha256}`)
const other = Buffer.from('another program').toString('base64')

/** @type {[name: string, fault: RegExp, answer: (socket: import('node:tls').TLSSocket, good: string) => void][]} */
const FAULTS = [
  [
    'another program',
    /no program yet: refused the program of the controller: its SHA-256 is [0-9a-f]{64}; next attempt within 1 s/,
    (socket, good) => socket.end(good.replace(/"result":"[^"]*"/, `"result":"${other}"`)),
  ],
  ['half of it', /no program yet: .*closed/, (socket, good) => socket.end(good.slice(0, good.length / 2))],
  [
    'more than a line may have',
    /no program yet: line longer than 16 MB/,
    socket => socket.write('a'.repeat(17 << 20)),
  ],
  ['garbage', /no program yet: line is not a JSON object/, socket => socket.write('garbage\n')],
  [
    'a number',
    /no program yet: refused the program of the controller/,
    (socket, good) => socket.write(good.replace(/"result":"[^"]*"/, '"result":7')),
  ],
]

for (const [name, fault, answer] of FAULTS)
  t.test(`${name} is refused, and the program is requested again`, async t => {
    /** @type {string[]} */
    let kept = []
    const { machine, listening } = await rig(t, async (socket, good, attempt) => {
      if (attempt === 1) return answer(socket, good)
      kept = await readdir(machine.state).catch(() => [])
      socket.end(good)
    })
    await listening()
    machine.start()
    await machine.printed(fault)
    await machine.printed(arrived)
    t.strictSame(kept, [], 'nothing was stored')
    await machine.printed(/Z \w+ controller connected/)
  })

t.test('a machine waits for its controller', async t => {
  const { machine, listening } = await rig(t, (socket, good) => socket.end(good))
  machine.start()
  t.ok(await machine.printed(/no program yet: .*ECONNREFUSED; next attempt within 1 s/))
  await listening()
  t.ok(await machine.printed(arrived))
})

t.test('a controller with another secret gets no request', async t => {
  const { machine, listening } = await rig(t, () => t.fail('a request'), { secret: randomBytes(32) })
  await listening()
  machine.start()
  t.ok(await machine.printed(/does not have the secret of this run; next attempt within 2 s/))
})

t.test('a full disk and a damaged stored program are handled', async t => {
  const { machine, listening } = await rig(t, (socket, good) => socket.end(good))
  await listening()
  const archive = join(machine.state, `${program.sha256}.json.gz`)
  await mkdir(machine.state, { recursive: true })
  await writeFile(archive, program.bytes.subarray(0, 100))
  await symlink('/dev/full', `${archive}.part`)
  machine.start()
  t.ok(await machine.printed(/no program yet: ENOSPC: .*; next attempt within 1 s/))
  t.ok(await machine.printed(arrived))
  t.strictSame(await readFile(archive), program.bytes)
})

t.test('a program unknown to the controller is an error on both sides', async t => {
  const dir = await fleetFolder(t)
  const other = 'ab'.repeat(32)
  const provider = machinesOf(t, dir, { sha256: other })
  const fleet = await openFleet(t, dir, { provider })
  const abort = new AbortController()
  const [event] = await Promise.all([
    new Promise(resolve => fleet.on('event', event => /program/.test(event.text) && resolve(event.text))),
    (async () => {
      const launched = fleet
        .launch(await fleet.plan(1, { allow: ['127.0.0.1:1'] }), { signal: abort.signal })
        .catch(error => error)
      await until(() => provider.machines.length > 0)
      await provider.machines[0].printed(/next attempt within 2 s/)
      abort.abort()
      t.match((await launched).message, /interrupted/)
    })(),
  ])
  t.match(event, `cannot send the program to d1: the controller has no program ${other}: stop this drone`)
  t.match(provider.machines[0].output, `bootstrap: no program yet: the controller has no program ${other}`)
  t.strictSame(await readdir(provider.machines[0].root).then(names => names.includes('state')), false)
})
