import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { LaunchError } from '../../fleet/providers/contract.js'
import { local } from '../../fleet/providers/local.js'
import { handleOf, isAlive, signal } from '../../fleet/providers/processes.js'
import { until } from '../kit/wait.js'
import { DRONE } from './agent-process.js'

const SECRET = 'c0ffee'.repeat(10).padEnd(64, '0')

/** @param {any} t */
async function folder(t) {
  const dir = await mkdtemp(join(tmpdir(), 'halley-local-'))
  t.teardown(async () => {
    const found = await local.find('all', { dir, flags: {} })
    for (const { handle } of found) await signal(handle, 'SIGKILL')
    await rm(dir, { recursive: true, force: true })
  })
  return dir
}

/** @param {string[]} ids @returns {any[]} */
const configsOf = ids =>
  // Nobody listens there: these drones look for a controller, and find none.
  ids.map(id => ({
    id,
    run: 'r1',
    secret: SECRET,
    controller: '127.0.0.1:9',
    allow: ['127.0.0.1:1'],
    apiKey: 'api-key-1',
  }))

/** @param {string} dir @param {string} text of a shell script that is taken for Node */
async function fakeNode(dir, text) {
  const file = join(dir, 'fake-node')
  await writeFile(file, `#!/bin/sh\n${text}\n`)
  await chmod(file, 0o755)
  return file
}

const quiet = () => {}

t.test('a plan says what would be launched, without secrets, and does nothing', async t => {
  const dir = await folder(t)
  const { lines, price } = await local.plan({ drones: configsOf(['d1', 'd2']), flags: {}, dir })
  const text = lines.join('\n')
  t.equal(price, null)
  t.match(text, `d2: ${process.execPath} ${DRONE} ${dir}/drones/d2.json`)
  t.match(text, '"exitAfter":120', 'forgotten drones end')
  t.notMatch(text, SECRET)
  t.notMatch(text, 'api-key-1')
  t.same(await readdir(dir), [])
})

t.test('drones are processes of their own, found again by anybody who knows the folder', async t => {
  const dir = await folder(t)
  const options = { dir, flags: {} }
  const plan = await local.plan({ drones: configsOf(['d1', 'd2']), ...options })
  const said = /** @type {string[]} */ ([])
  const handles = await local.launch(plan, text => said.push(text))
  t.same(
    handles.map(({ id, run, state }) => [id, run, state]),
    [
      ['d1', 'r1', 'running'],
      ['d2', 'r1', 'running'],
    ],
  )
  t.match(said.at(-1), /2 of 2/)
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
  t.equal(group, pid, 'what ends this process does not end it')

  // As after a controller that was killed before it had noted what it has started.
  await rm(join(drones, 'd2.process'))
  const found = await local.find(['r1'], options)
  t.same(found.map(({ handle }) => handle).sort(), handles.map(({ handle }) => handle).sort())
  t.same(await local.find(['other'], options), [])

  await signal(handles[0].handle, 'SIGKILL')
  await until(async () => !(await isAlive(handles[0].handle)))
  t.match(
    (await local.find('all', options)).find(({ id }) => id === 'd1'),
    { state: 'gone' },
  )
  const again = await local.restart(handles[0], options)
  t.not(again.handle, handles[0].handle)
  t.ok(await isAlive(again.handle))

  await local.stop([again, handles[1]], options, quiet)
  t.same(await Promise.all([again, handles[1]].map(({ handle }) => isAlive(handle))), [false, false])
  t.same(await readdir(dir), [], 'nothing is left')
  await local.stop([again, handles[1]], options, quiet)
})

t.test('a drone that does not end by itself is killed', async t => {
  const dir = await folder(t)
  const node = await fakeNode(dir, `trap '' TERM; echo up; while :; do sleep 0.05; done`)
  const options = { dir, flags: { node } }
  const handles = await local.launch(await local.plan({ drones: configsOf(['d1']), ...options }), quiet)
  const log = join(dir, 'drones', 'd1.log')
  await until(async () => (await readFile(log, 'utf8')).includes('up'))
  const said = /** @type {string[]} */ ([])
  await local.stop(handles, options, text => said.push(text))
  t.match(said.join(), /killed/)
  t.notOk(await isAlive(handles[0].handle))
})

t.test('a launch that fails says what is there', async t => {
  const dir = await folder(t)
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
  t.same(
    error.launched.map((/** @type {any} */ { id }) => id),
    ['d1'],
  )
  t.notMatch(error.message, '\n')
})

t.test('what a drone said at its end is known', async t => {
  const dir = await folder(t)
  const options = { dir, flags: { node: await fakeNode(dir, 'echo "drone: no luck" >&2; exit 3') } }
  const [handle] = await local.launch(await local.plan({ drones: configsOf(['d1']), ...options }), quiet)
  await until(async () => !(await isAlive(handle.handle)))
  t.match(await local.find('all', options), [{ id: 'd1', state: 'gone', note: 'drone: no luck' }])
})

t.test('a number that another process has by now is not taken for ours', async t => {
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

t.test('addresses for drones that listen are free, and different', async t => {
  const addresses = (await local.listen?.(3)) ?? []
  t.equal(new Set(addresses).size, 3)
  t.ok(addresses.every(address => /^127\.0\.0\.1:\d+$/.test(address)))
})
