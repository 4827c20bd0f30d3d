import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { TOKEN_TTL } from '../../../src/pages/admin/tokens.js'
import { drivers } from '../../kit/drivers.js'
import { until } from '../../kit/wait.js'
import { mockSnapshots } from '../../metrics/mock.js'
import { lines, startAdmin } from './rig.js'

for (const driver of drivers) {
  t.test(`${driver}: the stream starts with the history and continues live`, async t => {
    const admin = await startAdmin(t, { driver })
    const answer = await admin.stream(await admin.token())
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('content-type'), 'application/x-ndjson')
    t.equal(answer.headers.get('cache-control'), 'no-store')
    const messages = lines(answer)
    const hello = (await messages.next()).value
    t.equal(hello.type, 'hello')
    t.same(hello.history, JSON.parse(JSON.stringify(admin.view.history)))
    for (const snapshot of mockSnapshots({ seconds: 3, seed: 2 })) {
      admin.view.send({ type: 'snapshot', snapshot })
      t.same((await messages.next()).value, JSON.parse(JSON.stringify({ type: 'snapshot', snapshot })))
    }
    await messages.return()
    await until(() => admin.view.listeners === 0)
    t.pass('a reader who leaves is forgotten')
  })

  t.test(`${driver}: the stream ends when its token expires`, async t => {
    let now = 1_000_000
    const admin = await startAdmin(t, { driver, clock: () => now })
    const token = await admin.token()
    now += TOKEN_TTL - 300
    const messages = lines(await admin.stream(token))
    t.equal((await messages.next()).value.type, 'hello')
    t.same(await messages.next(), { done: true, value: undefined })
    await until(() => admin.view.listeners === 0)
    now += 300
    t.equal((await admin.stream(token)).status, 401)
  })

  t.test(`${driver}: a client that does not read is disconnected, others are not`, async t => {
    const admin = await startAdmin(t, { driver })
    const token = await admin.token()
    const { hostname, port } = new URL(admin.url)
    const slow = connect(Number(port), hostname)
    slow.on('error', () => {})
    t.teardown(() => slow.destroy())
    await once(slow, 'connect')
    slow.write(
      `GET /admin/api/stream HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    )
    await once(slow, 'readable')
    const messages = lines(await admin.stream(token))
    t.equal((await messages.next()).value.type, 'hello')
    t.equal(admin.view.listeners, 2)
    const text = 'x'.repeat(1024 * 1024)
    for (let n = 0; admin.view.listeners === 2 && n < 100; n++) {
      admin.view.send({ type: 'log', line: `${n}${text}` })
      t.equal((await messages.next()).value.line.length, text.length + String(n).length)
    }
    t.equal(admin.view.listeners, 1)
    await messages.return()
  })

  t.test(`${driver}: the number of streams is limited`, async t => {
    const admin = await startAdmin(t, { driver })
    const token = await admin.token()
    const leaving = new AbortController()
    // Keeps the answers: fetch ends a stream whose Response was collected as garbage.
    const answers = []
    for (let n = 0; n < 16; n++)
      answers.push(await admin.stream(token, n === 0 ? { signal: leaving.signal } : {}))
    t.same(
      answers.map(({ status }) => status),
      Array(16).fill(200),
    )
    const refused = await admin.stream(token)
    t.equal(refused.status, 503)
    t.match((await refused.json()).error, 'too many stats clients')
    leaving.abort()
    await until(() => admin.view.listeners === 15)
    answers.push(await admin.stream(token))
    t.equal(answers.at(-1)?.status, 200)
  })
}

t.test('commands reach the gateway, and its result is returned', async t => {
  const admin = await startAdmin(t)
  const token = await admin.token()
  const command = async body => admin.post('command', body, { token })
  for (const known of [
    { type: 'gc', worker: null },
    { type: 'gc', worker: 1 },
    { type: 'restart', worker: 0 },
  ]) {
    t.same((await command(known)).body, { error: null })
    t.same(admin.view.commands.at(-1), known)
  }
  admin.view.fault = 'no worker has index 9'
  const failed = await command({ type: 'restart', worker: 9 })
  t.equal(failed.status, 200)
  t.same(failed.body, { error: 'no worker has index 9' })
  const before = admin.view.commands.length
  for (const forbidden of [{ type: 'stop' }, { type: 'log', on: true }]) {
    t.equal((await command(forbidden)).status, 403)
  }
  for (const unknown of [
    {},
    { type: 'x' },
    { type: 'restart' },
    { type: 'restart', worker: -1 },
    { type: 'gc', worker: 0.5 },
    '[',
    'null',
    '"gc"',
  ]) {
    t.equal((await command(unknown)).status, 400, JSON.stringify(unknown))
  }
  t.equal((await command({ type: 'gc', x: 'x'.repeat(5000) })).status, 413)
  t.equal(admin.view.commands.length, before)
})
