import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import {
  checkLength,
  listSockets,
  makeOwnFolder,
  socketFolder,
  socketPath,
} from '../../src/metrics/socket-path.js'
import { tempDir } from '../kit/folders.js'

const uid = process.getuid?.()

/** @param {any} t @param {string} path where somebody listens until the test has ended */
async function listen(t, path) {
  const server = createServer(socket => socket.destroy())
  await new Promise(resolve => server.listen(path, () => resolve(undefined)))
  t.teardown(() => server.close())
  return server
}

t.test('the path has the runtime folder of the user and the port', async t => {
  const folder = t.testdir({ run: {}, tmp: {} })
  const [runtimeDir, temporary] = [join(folder, 'run'), join(folder, 'tmp')]
  t.equal(socketPath('auto', 8000, { runtimeDir, temporary }), join(runtimeDir, 'halley', '8000.sock'))
  t.equal(socketPath('auto', 8000, { temporary }), join(temporary, `halley-${uid}`, '8000.sock'))
  t.equal(
    socketFolder({ runtimeDir: join(folder, 'gone'), temporary }),
    join(temporary, `halley-${uid}`),
    'the folder of a session that has ended, or of another user',
  )
  writeFileSync(join(folder, 'file'), '')
  for (const wrong of [join(folder, 'file', 'below'), `/${'x'.repeat(300)}`]) {
    t.equal(
      socketFolder({ runtimeDir: wrong, temporary }),
      join(temporary, `halley-${uid}`),
      'what cannot be',
    )
  }
  t.equal(socketPath('none', 8000, { runtimeDir }), null)
  t.equal(socketPath('/run/gateway.sock', 8000, { runtimeDir }), '/run/gateway.sock')
})

t.test('a folder open to other users is refused', async t => {
  const root = t.testdir({ other: {}, real: {} })
  const folder = join(root, 'halley')
  makeOwnFolder(folder)
  t.equal(statSync(folder).mode & 0o777, 0o700)
  makeOwnFolder(folder)
  chmodSync(folder, 0o755)
  t.throws(() => makeOwnFolder(folder), { message: /accessible to other users: run chmod 700/ })
  chmodSync(join(root, 'real'), 0o700)
  symlinkSync(join(root, 'real'), join(root, 'link'))
  t.throws(() => makeOwnFolder(join(root, 'link')), { message: /not a folder of this user/ })
  writeFileSync(join(root, 'file'), '')
  t.throws(() => makeOwnFolder(join(root, 'file')), { code: 'EEXIST' })
})

t.test('the folder of another user is not used', { skip: uid !== 0 && 'only root can make one' }, async t => {
  const { chownSync } = await import('node:fs')
  const folder = join(t.testdir({ foreign: {} }), 'foreign')
  chmodSync(folder, 0o700)
  chownSync(folder, 65534, 65534)
  t.throws(() => makeOwnFolder(folder), { message: /not a folder of this user/ })
  t.not(socketFolder({ runtimeDir: folder }), join(folder, 'halley'))
})

t.test('a path that is too long is refused', async t => {
  checkLength(`/${'x'.repeat(106)}`)
  t.throws(() => checkLength(`/${'x'.repeat(107)}`), { message: /at most 107 bytes, not 108/ })
  t.throws(() => checkLength(`/${'ä'.repeat(54)}`), { message: /107 bytes/ })
})

t.test('running gateways are found in both folders', async t => {
  // A path that is too long would be truncated to that of another socket.
  const root = tempDir(t)
  for (const name of ['run', 'tmp']) mkdirSync(join(root, name))
  const place = { runtimeDir: join(root, 'run'), temporary: join(root, 'tmp') }
  t.same(await listSockets(place), [], 'no gateway was ever there')
  const [own, temporary] = [join(root, 'run', 'halley'), join(root, 'tmp', `halley-${uid}`)]
  for (const folder of [own, temporary]) makeOwnFolder(folder)
  await listen(t, join(own, '9000.sock'))
  await listen(t, join(temporary, '8000.sock'))
  await listen(t, join(own, 'other.sock'))
  writeFileSync(join(own, '7000.sock'), 'no socket')
  mkdirSync(join(own, '6000.sock'))
  const dead = createServer()
  await new Promise(resolve => dead.listen(join(own, '5000.sock'), () => resolve(undefined)))
  t.same(
    (await listSockets(place)).map(({ port }) => port),
    [5000, 8000, 9000],
  )
  await new Promise(resolve => dead.close(resolve))
  t.same(await listSockets(place), [
    { path: join(temporary, '8000.sock'), port: 8000 },
    { path: join(own, '9000.sock'), port: 9000 },
  ])
})
