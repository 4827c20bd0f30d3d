import { execFile, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { host, packedDrone, SECRET, startDrone } from './agent-process.js'

const file = await packedDrone(t)

t.test('a drone of another secret does not get in, and says so', async t => {
  const drone = await startDrone(t, file)
  const other = { id: 'd2', run: 'r1', secret: SECRET.replace('5e', '5f'), allow: [host], exitAfter: 1 }
  const { controller } = JSON.parse(readFileSync(drone.config, 'utf8'))
  const folder = t.testdir({ 'config.json': JSON.stringify({ ...other, controller }) })
  const { stdout } = await promisify(execFile)(process.execPath, [file, join(folder, 'config.json')])
  t.match(stdout, /the other side has not the secret of this run/)
  t.equal(drone.hellos.length, 1)
})

t.test('a configuration that cannot be is one line, and exit code 2', async t => {
  const good = { id: 'd1', run: 'r1', secret: SECRET, allow: [host], controller: `${host}:1` }
  const folder = t.testdir()
  const check = (/** @type {string} */ text) => {
    const config = join(folder, 'config.json')
    writeFileSync(config, text, { mode: 0o600 })
    return spawnSync(process.execPath, [file, config], { encoding: 'utf8' })
  }
  for (const [some, fault] of /** @type {[any, RegExp][]} */ ([
    [{ id: undefined }, /id, .* are needed/],
    [{ secret: 'abc' }, /secret \(64 hex digits\)/],
    [{ secret: 7 }, /"secret"/],
    [{ allow: 'x' }, /"allow"/],
    [{ controler: 'x' }, /"controler" is wrong/],
    [{ listen: '0.0.0.0:1' }, /controller or listen/],
    [{ perProcess: '9' }, /"perProcess"/],
    [{ exitAfter: -1 }, /"exitAfter"/],
  ])) {
    const { status, stderr } = check(JSON.stringify({ ...good, ...some }))
    t.equal(status, 2)
    t.match(stderr, fault)
    t.equal(stderr.trim().split('\n').length, 1)
  }
  t.match(check('{').stderr, /config\.json: .*JSON/)
  t.match(check('null').stderr, /id, .* are needed/)
  const nowhere = spawnSync(process.execPath, [file, join(folder, 'none.json')], { encoding: 'utf8' })
  t.match([nowhere.status, nowhere.stderr], [2, /none\.json: ENOENT/])
  t.equal(spawnSync(process.execPath, [file, '--what']).status, 2)
})
