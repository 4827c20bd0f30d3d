import { spawn } from 'node:child_process'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { LaunchError } from '../../fleet/providers/contract.js'
import { local } from '../../fleet/providers/local.js'
import { handleOf, isAlive, signal } from '../../fleet/providers/processes.js'
import { until } from '../kit/wait.js'
import { DRONE } from './agent-process.js'
import { fleetFolder } from './controller/fleet-rig.js'

const SECRET = 'c0ffee'.repeat(10).padEnd(64, '0')

/** @param {string[]} ids @returns {any[]} */
const configsOf = ids =>
  // No controller listens there.
  ids.map(id => ({
    id,
    run: 'r1',
    secret: SECRET,
    controller: '127.0.0.1:9',
    allow: ['127.0.0.1:1'],
    apiKey: 'api-key-1',
  }))

/** @param {string} dir @param {string} text of a shell script used as Node.js */
async function fakeNode(dir, text) {
  const file = join(dir, 'fake-node')
  await writeFile(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  return file
}

const quiet = () => {}

t.test('a plan shows the launch without secrets and launches nothing', async t => {
  const dir = await fleetFolder(t)
  const { lines, price } = await local.plan({ drones: configsOf(['d1', 'd2']), flags: {}, dir })
  const text = lines.join('\n')
  t.equal(price, null)
  t.match(text, `d2: ${process.execPath} ${DRONE} ${dir}/drones/d2.json`)
  t.match(text, '"exitAfter":120', 'forgotten drones end')
  t.notMatch(text, SECRET)
  t.notMatch(text, 'api-key-1')
  t.same(await readdir(dir), [])
})

t.test('drones are detached processes that are found by their folder', async t => {
  const dir = await fleetFolder(t)
  const options = { dir, flags: {} }
  const plan = await local.plan({ drones: configsOf(['d1', 'd2']), ...options })
  const progress = /** @type {string[]} */ ([])
  const handles = await local.launch(plan, text => progress.push(text))
  t.equal(handles.map(({ id, run, state }) => `${id} ${run} ${state}`).join(), 'd1 r1 running,d2 r1 running')
  t.match(progress.at(-1), /2 of 2/)
  const drones = join(dir, 'drones')
  for (const file of ['d1.json', 'd1.process', 'd1.log'])
    t.equal((await stat(join(drones, file))).mode & 0o777, 0o600, file)
  t.match(JSON.parse(await readFile(join(drones, 'd1.json'), 'utf8')), {
    secret: SECRET,
    apiKey: 'api-key-1',
  })
  const [pid] = handles[0].handle.split('@')
  t.notMatch(await readFile(`/proc/${pid}/cmdline`, 'utf8'), SECRET)
  const group = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1].split(' ')[2]
  t.equal(group, pid, 'signals to this process group do not reach it')

  // As if a controller was killed before it stored the handle.
  await rm(join(drones, 'd2.process'))
  const found = await local.find(['r1'], options)
  t.same(found.map(({ handle }) => handle).sort(), handles.map(({ handle }) => handle).sort())
  t.same(await local.find(['other'], options), [])

  await signal(handles[0].handle, 'SIGKILL')
  await until(async () => !(await isAlive(handles[0].handle)))
  const all = await local.find('all', options)
  t.match(
    all.find(({ id }) => id === 'd1'),
    { state: 'gone' },
  )
  const again = await local.restart(handles[0], options)
  t.not(again.handle, handles[0].handle)
  t.ok(await isAlive(again.handle))

  await local.stop([again, handles[1]], options, quiet)
  t.same(await Promise.all([again, handles[1]].map(({ handle }) => isAlive(handle))), [false, false])
  t.same(await readdir(dir), [], 'no process is left')
  await local.stop([again, handles[1]], options, quiet)
})

t.test('a drone that does not exit is killed', async t => {
  const dir = await fleetFolder(t)
  const node = await fakeNode(dir, `trap '' TERM; echo up; while :; do sleep 0.05; done`)
  const options = { dir, flags: { node } }
  const handles = await local.launch(await local.plan({ drones: configsOf(['d1']), ...options }), quiet)
  const log = join(dir, 'drones', 'd1.log')
  await until(async () => (await readFile(log, 'utf8')).includes('up'))
  const progress = /** @type {string[]} */ ([])
  await local.stop(handles, options, text => progress.push(text))
  t.match(progress.join(), /killing/)
  t.notOk(await isAlive(handles[0].handle))
})

t.test('a failed launch lists the running drones', async t => {
  const dir = await fleetFolder(t)
  const options = { dir, flags: { node: '/nowhere/node' } }
  const plan = await local.plan({ drones: configsOf(['d1']), ...options })
  await t.rejects(local.launch(plan, quiet), {
    message: /^--node \/nowhere\/node is not an executable program/,
    launched: [],
  })

  const half = await local.plan({ drones: configsOf(['d1', 'd2']), dir, flags: {} })
  await mkdir(join(dir, 'drones', 'd2.json', 'in-the-way'), { recursive: true })
  const error = await local.launch(half, quiet).catch(error => error)
  t.ok(error instanceof LaunchError)
  t.match(error.launched, [{ id: 'd1' }])
  t.equal(error.launched.length, 1)
  t.notMatch(error.message, '\n')
})

t.test('the last log line of a drone is the reason of its exit', async t => {
  const dir = await fleetFolder(t)
  const options = { dir, flags: { node: await fakeNode(dir, 'echo "drone: no luck" >&2; exit 3') } }
  const [handle] = await local.launch(await local.plan({ drones: configsOf(['d1']), ...options }), quiet)
  await until(async () => !(await isAlive(handle.handle)))
  t.match(await local.find('all', options), [{ id: 'd1', state: 'gone', note: 'drone: no luck' }])
})

t.test('a reused pid does not count as a drone', async t => {
  const other = spawn('sleep', ['100'])
  t.teardown(() => other.kill('SIGKILL'))
  const handle = await handleOf(/** @type {number} */ (other.pid))
  t.ok(await isAlive(handle))
  const stale = `${other.pid}@1`
  t.notOk(await isAlive(stale))
  t.notOk(await signal(stale, 'SIGKILL'), 'neither it nor its group is signalled')
  t.ok(await isAlive(handle))
  for (const odd of ['', '0@', '@', '-1@5', 'abc@1']) t.notOk(await isAlive(odd))
})

t.test('listening drones get free and distinct addresses', async t => {
  const addresses = (await local.listen?.(3)) ?? []
  t.equal(new Set(addresses).size, 3)
  t.ok(addresses.every(address => /^127\.0\.0\.1:\d+$/.test(address)))
})
