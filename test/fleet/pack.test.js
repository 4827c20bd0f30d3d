import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { packDrone, writeDrone } from '../../fleet/pack.js'
import { squeeze } from '../../fleet/providers/ec2/squeeze.js'
import { USER_DATA_LIMIT } from '../../fleet/providers/ec2/user-data.js'
import { packageVersion } from '../../src/version.js'

const run = promisify(execFile)

/** Bytes of the drone as it is sent to a machine of EC2: its start-up script, the unpacker and a long configuration need the rest. */
const ROOM = USER_DATA_LIMIT - 3200

t.test('the drone is one module that says what it is, and needs nothing but Node', async t => {
  const text = await packDrone()
  t.match(text.split('\n', 1)[0], new RegExp(`^// Halley ${packageVersion().replaceAll('.', '\\.')}: `))
  const imports = [...text.matchAll(/\bimport(?:[\w$*{},\s]+from)?\s*\(?"([^"]+)"/g)].map(([, name]) => name)
  t.ok(imports.length > 5)
  t.same(
    imports.filter(name => !(name.startsWith('node:') && isBuiltin(name))),
    [],
  )
  const size = squeeze(text).packed.length
  t.ok(size <= ROOM, `${size} of ${ROOM} bytes`)
})

t.test('its file is there whole, can be read by all, and runs where there is nothing else', async t => {
  const folder = t.testdir({ 'drone.mjs': 'an old one' })
  const file = join(folder, 'drone.mjs')
  await writeDrone(file)
  t.equal(statSync(file).mode & 0o777, 0o644)
  t.same(readdirSync(folder), ['drone.mjs'])
  t.equal(readFileSync(file, 'utf8'), await packDrone())
  // Others than the one that runs this test may be named: `HALLEY_TEST_NODES=/a/node:/b/node`.
  const nodes = [process.execPath, ...(process.env.HALLEY_TEST_NODES?.split(':') ?? [])]
  for (const node of nodes) {
    const options = { cwd: '/', env: {} }
    const { stdout } = await run(node, [file, '--help'], options)
    t.match(stdout, `Halley ${packageVersion()}: `)
    t.match(stdout, /CONFIG\.json/)
  }
})

t.test('a folder that is not there is an error, and nothing is left half-written', async t => {
  const folder = t.testdir({ here: {} })
  await t.rejects(writeDrone(join(folder, 'not', 'drone.mjs')), { code: 'ENOENT' })
  await t.rejects(writeDrone(join(folder, 'here')), { code: /EISDIR|ENOTDIR/ })
  t.same(readdirSync(folder), ['here'])
})
