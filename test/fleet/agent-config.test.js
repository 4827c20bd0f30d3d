import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseConfig } from '../../fleet/drone/config.js'
import { DRONE, host, SECRET, startDrone, TestDrone } from './agent-process.js'

t.test('a drone with another secret is refused and logs the reason', async t => {
  const drone = await startDrone(t)
  const other = { id: 'd2', run: 'r1', secret: SECRET.replace('5e', '5f'), allow: [host] }
  const { controller } = JSON.parse(readFileSync(drone.config, 'utf8'))
  const folder = t.testdir({ 'config.json': JSON.stringify({ ...other, controller }) })
  const drone2 = new TestDrone()
  const child = spawn(process.execPath, [DRONE, join(folder, 'config.json')])
  drone2.attach(child)
  t.teardown(() => {
    child.kill('SIGKILL')
    return drone2.exited
  })
  await drone2.until(() => drone2.output.includes('the peer does not have the secret of this run'))
  t.equal(drone.hellos.length, 1)
})

t.test('an invalid configuration is a one-line error with exit code 2', async t => {
  const good = { id: 'd1', run: 'r1', secret: SECRET, allow: [host], controller: `${host}:1` }
  const folder = t.testdir()
  const check = (/** @type {string} */ text) => {
    const config = join(folder, 'config.json')
    writeFileSync(config, text, { mode: 0o600 })
    return spawnSync(process.execPath, [DRONE, config], { encoding: 'utf8' })
  }
  for (const [some, fault] of /** @type {[any, RegExp][]} */ ([
    [{ id: undefined }, /id is missing: it must be 1 to 64 letters/],
    [{ secret: 'abc' }, /secret is "abc": it must be 64 hex digits/],
    [{ secret: 7 }, /secret is 7: /],
    [{ allow: 'x' }, /allow is "x": it must be a list/],
    [{ controler: 'x' }, /unknown key controler; known keys are id, run, .*controller/],
    [{ listen: '0.0.0.0:1' }, /only one of controller and listen must be host:port/],
    [{ controller: '' }, /^one of controller and listen must be host:port/],
    [{ controller: 'h:70000' }, /controller has port 70000: it must be at most 65535/],
    [{ perProcess: '9' }, /perProcess is "9": it must be a whole number from 1/],
    [{ exitAfter: -1 }, /exitAfter is -1: it must be a number from 0/],
  ]))
    t.throws(() => parseConfig(JSON.stringify({ ...good, ...some })), { message: fault })
  t.throws(() => parseConfig('{'), { message: /^not valid JSON: / })
  t.throws(() => parseConfig('null'), { message: 'not a JSON object' })
  const { status, stderr } = check(JSON.stringify({ ...good, secret: 'abc' }))
  t.match([status, stderr], [2, /^drone: [^\n]*config\.json: secret is "abc": it must be 64 hex digits\n$/])
  const nowhere = spawnSync(process.execPath, [DRONE, join(folder, 'none.json')], { encoding: 'utf8' })
  t.match([nowhere.status, nowhere.stderr], [2, /none\.json: ENOENT/])
  const what = spawnSync(process.execPath, [DRONE, '--what'], { encoding: 'utf8' })
  t.match([what.status, what.stderr], [2, /unknown option --what\n\nUsage: /])
  writeFileSync(join(folder, 'config.json'), JSON.stringify(good))
  const sound = spawnSync(process.execPath, [DRONE, join(folder, 'config.json'), '--check'])
  t.match(JSON.parse(String(sound.stdout)), { capacity: Number, files: Number, node: process.version })
})
