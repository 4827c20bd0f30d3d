import { randomBytes } from 'node:crypto'
import t from 'tap'
import { Cursors, deriveCursorKey } from '../../../src/clients/transport/uni-poll/cursor.js'
import { startGateway } from '../../kit/gateway.js'
import { poll } from '../../kit/uni-poll-client.js'
import { pause, until } from '../../kit/wait.js'
import { history, open } from '../session/support.js'

const key = randomBytes(32)
const places = [
  { name: 'a', offset: 0, epoch: 'AbCdEfGh' },
  { name: 'größer:🎈', offset: Number.MAX_SAFE_INTEGER, epoch: 'x' },
  { name: 'c', offset: 2 ** 31 + 7, epoch: '' },
  { name: '__proto__', offset: 127, epoch: 'é'.repeat(200) },
  { name: 'd'.repeat(300), offset: 128, epoch: 'AbCdEfGh' },
]

t.test('a cursor stores its positions', async t => {
  const cursor = new Cursors(key, 65536).write(places)
  t.match(cursor, /^[A-Za-z0-9_-]+$/)
  const read = new Cursors(key, 65536).read(cursor)
  t.same(
    [...(read ?? [])],
    places.map(({ name, offset, epoch }) => [name, { offset, epoch }]),
  )
  const none = new Cursors(key, 65536).write([])
  t.same([...(new Cursors(key, 65536).read(none) ?? [1])], [])
})

t.test('damaged, forged and overlong cursors are refused', async t => {
  const cursors = new Cursors(key, 65536)
  const cursor = cursors.write(places.slice(0, 1))
  t.ok(cursors.read(cursor))
  const wrong = [...Array(500).keys()].map(size => randomBytes(size).toString('base64url'))
  for (let at = 0; at < cursor.length; at++) {
    wrong.push(cursor.slice(0, at))
    for (const letter of 'AQgw_9') wrong.push(cursor.slice(0, at) + letter + cursor.slice(at + 1))
  }
  t.same(
    wrong.filter(text => text !== cursor && cursors.read(text) !== null),
    [],
    'damaged, cut off, random',
  )
  for (const text of [`${cursor}A`, `${cursor}=`, `${cursor}\n`, ` ${cursor}`, `${cursor}${cursor}`, 'ü', ''])
    t.equal(cursors.read(text), null)
  t.equal(cursors.read(cursor.replace('_', '/').replace('-', '+') + (/[-_]/.test(cursor) ? '' : '=')), null)
  t.equal(new Cursors(randomBytes(32), 65536).read(cursor), null, 'signed with another key')
  t.equal(new Cursors(key, cursor.length - 1).read(cursor), null, 'longer than allowed')
  t.ok(new Cursors(key, cursor.length).read(cursor))
})

t.test('equal positions have the same cursor, and the cache is limited', async t => {
  const cursors = new Cursors(key, 65536)
  t.equal(cursors.write(places), cursors.write(places))
  t.equal(cursors.read(cursors.write(places)), cursors.read(cursors.write(places)))
  const written = Array.from({ length: 1000 }, (_, offset) => cursors.write([{ ...places[0], offset }]))
  t.equal(new Set(written).size, 1000)
  for (const [offset, cursor] of written.entries()) t.equal(cursors.read(cursor)?.get('a')?.offset, offset)
})

t.test('the key derives from the first secret of the configuration', async t => {
  const derive = (own = '', token = '', api = '', random = 'random') => {
    const uni_poll = { cursor_secret_key: own }
    const client = { token: { hmac_secret_key: token } }
    return deriveCursorKey(/** @type {any} */ ({ uni_poll, client, http_api: { key: api } }), random)
  }
  const keys = [derive('own', 'token', 'api'), derive('', 'token', 'api'), derive('', '', 'api'), derive()]
  t.equal(new Set(keys).size, 4)
  t.equal(derive('own', '', '', ''), keys[0])
  t.equal(derive('', 'token', '', ''), keys[1])
  for (const key of keys) t.equal(Buffer.from(key, 'base64').length, 32)
})

const uni_poll = { enabled: true, cursor_secret_key: 'shared' }
const client = { allow_anonymous_connect_without_token: true, history_max_publication_limit: 10 }
const config = {
  workers: 2,
  uni_poll,
  client,
  channel: {
    without_namespace: { ...open, ...history, history_size: 40 },
    namespaces: [{ name: 'passing', ...open, ...history, history_ttl: '5s', history_meta_ttl: '5s' }],
  },
}

/** @import { TestGateway } from '../../kit/gateway.js' */

/** @param {TestGateway} gateway @param {string} channel @param {number} from @param {number} to */
async function publish(gateway, channel, from, to) {
  for (let n = from; n <= to; n++) await gateway.api('publish', { channel, data: n })
}

/** @param {number} from @param {number} to */
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** Polls until an answer is empty. @param {TestGateway} gateway @param {string} channel @param {string} cursor */
async function drain(gateway, channel, cursor) {
  const all = { data: /** @type {any[]} */ ([]), lost: 0, polls: 0, cursor }
  await until(async () => {
    const answer = await poll(gateway, { channel, cursor: all.cursor, timeout: 0 })
    all.polls++
    all.cursor = answer.cursor
    if (answer.body.lost) all.lost++
    all.data.push(...answer.data)
    return answer.data.length === 0
  })
  return all
}

t.test('in a gateway', async t => {
  const gateway = await startGateway(t, config)
  const start = async (/** @type {string} */ channel) => (await poll(gateway, { channel, timeout: 0 })).cursor

  t.test('a gap longer than a page is returned in pages, completely', async t => {
    const cursor = await start('pages')
    await publish(gateway, 'pages', 1, 35)
    const all = await drain(gateway, 'pages', cursor)
    t.same(all.data, range(1, 35))
    t.equal(all.lost, 0)
    t.equal(all.polls, 5)
    const earliest = await poll(gateway, { channel: 'pages', since: 'earliest', timeout: 0 })
    t.same(earliest.data, range(1, 10))
    t.same((await drain(gateway, 'pages', earliest.cursor)).data, range(11, 35))
  })

  t.test('pages are limited in bytes', async t => {
    const cursor = await start('bytes')
    const data = 'x'.repeat(300_000)
    for (let n = 0; n < 8; n++) await gateway.api('publish', { channel: 'bytes', data })
    const all = await drain(gateway, 'bytes', cursor)
    t.equal(all.data.length, 8)
    t.equal(all.lost, 0)
    t.ok(all.polls >= 3, `${all.polls} polls`)
  })

  t.test('after trimmed history, a poll returns lost and the kept publications', async t => {
    const cursor = await start('trim')
    await publish(gateway, 'trim', 1, 50)
    const first = await poll(gateway, { channel: ['trim', 'pages'], cursor })
    t.same(first.body.lost, ['trim'])
    t.same(first.data, range(11, 20))
    const all = await drain(gateway, 'trim', first.cursor)
    t.same([all.data, all.lost], [range(21, 50), 0])
    const since = await poll(gateway, { channel: 'trim', since: 3, timeout: 0 })
    t.same([since.data, since.body.lost], [range(11, 20), ['trim']])
  })

  t.test('after removed history, a poll returns lost, then new publications', async t => {
    const cursor = await start('removed')
    await publish(gateway, 'removed', 1, 3)
    const top = (await drain(gateway, 'removed', cursor)).cursor
    await gateway.api('history_remove', { channel: 'removed' })
    const lost = await poll(gateway, { channel: 'removed', cursor })
    t.same(lost.body, { publications: [], lost: ['removed'], cursor: top })
    const whole = poll(gateway, { channel: 'removed', cursor: top })
    await publish(gateway, 'removed', 4, 4)
    t.match(
      await whole,
      { data: [4], body: { lost: undefined } },
      'a client with all publications has lost none',
    )
    t.match(await poll(gateway, { channel: 'removed', cursor }), { data: [4], body: { lost: ['removed'] } })
  })

  t.test('after a new stream, a poll returns lost and its first publication', async t => {
    const cursor = await start('passing:x')
    await publish(gateway, 'passing:x', 1, 5)
    const { epoch } = (await gateway.api('history', { channel: 'passing:x' })).result
    const old = (await drain(gateway, 'passing:x', cursor)).cursor
    const waiting = poll(gateway, { channel: 'passing:x', cursor: old })
    // No call may touch the stream until it has expired.
    await pause(6500)
    await publish(gateway, 'passing:x', 6, 6)
    t.match(await waiting, { data: [6], body: { lost: ['passing:x'], publications: [{ offset: 1 }] } })
    const answer = await gateway.api('history', { channel: 'passing:x' })
    t.not(answer.result.epoch, epoch)
    for (let i = 0; i < 8; i++) {
      const late = await poll(gateway, { channel: 'passing:x', cursor: old })
      t.match(late, { data: [6], body: { lost: ['passing:x'] } })
      const next = await poll(gateway, { channel: 'passing:x', cursor: late.cursor, timeout: 0 })
      t.same(next.body, { publications: [], cursor: late.cursor })
    }
  })

  t.test('another node with the same secret accepts the cursor', async t => {
    const cursor = await start('nodes')
    const same = await startGateway(t, { ...config, workers: 1 })
    const answer = await poll(same, { channel: 'nodes', cursor, timeout: 0 })
    t.match(answer, { status: 200, body: { lost: ['nodes'] } }, 'with its own history')
    const secret = { uni_poll: { enabled: true, cursor_secret_key: 'other' } }
    const other = await startGateway(t, { ...config, ...secret, workers: 1 })
    t.equal((await poll(other, { channel: 'nodes', cursor, timeout: 0 })).status, 400)
  })
})

t.test('without a secret all workers share a random one, including new workers', async t => {
  const gateway = await startGateway(t, {
    ...config,
    uni_poll: { enabled: true },
    http_api: { insecure: true, key: '' },
  })
  let cursor = (await poll(gateway, { channel: 'a', timeout: 0 })).cursor
  const { workerPids } = gateway
  process.kill(workerPids[0], 'SIGKILL')
  await gateway.line(({ msg, pid }) => msg === 'worker is listening' && !workerPids.includes(pid))
  for (let n = 1; n <= 30; n++) {
    await gateway.api('publish', { channel: 'a', data: n })
    const answer = await poll(gateway, { channel: 'a', cursor })
    t.same(answer.data, [n])
    cursor = answer.cursor
  }
})
