import t from 'tap'
import { createServer } from '../../src/server/index.js'
import { Log } from './conformance/rig.js'

const load = async () => {
  throw new Error('a long story about platforms\n\nno binary for this Node.js')
}

t.test('auto takes uWebSockets.js where it loads', async t => {
  const logger = new Log()
  t.equal((await createServer({ driver: 'auto', logger })).name, 'uws')
  t.equal(logger.count('warn'), 0)
})

t.test('auto falls back to node, and says so once, in one line', async t => {
  const logger = new Log()
  t.equal((await createServer({ driver: 'auto', logger, load })).name, 'node')
  t.equal(logger.count('warn'), 1)
  t.match(await logger.next('warn'), /^uWebSockets\.js does not load, .*no binary for this Node\.js$/)
})

t.test('uws is refused with a clear error where it does not load', async t => {
  await t.rejects(createServer({ driver: 'uws', load }), {
    message: 'http_server.driver is uws, but uWebSockets.js does not load: no binary for this Node.js',
  })
})

t.test('node does not try', async t => {
  t.equal((await createServer({ driver: 'node', load: () => t.fail('tried') })).name, 'node')
})
