// Requests to clients (docs/access.md): `request`, `publish` with `ack`, and the RPC method `$ack`.

import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { fetch } from '../../kit/fetch.js'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { StreamClient } from '../../kit/stream-client.js'
import { until } from '../../kit/wait.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import { anonymous, error, history, open, roundTrip, token, tokenClient, user } from './support.js'

const NOT_FOUND = error(104, 'not found')
const BAD_REQUEST = error(107, 'bad request')

const folder = testdir(t, {
  'hooks.mjs': `export default { rpc: { $ack: () => 'of the handler' } }`,
})
const gateway = await startGateway(t, {
  hooks: { module: join(folder, 'hooks.mjs') },
  prometheus: { enabled: true },
  uni_sse: { enabled: true },
  http_stream: { enabled: true },
  websocket: { message_size_limit: 131_072 },
  client: tokenClient({
    allow_anonymous_connect_without_token: true,
    acks: { enabled: true, max_pending: 4, max_targets: 5 },
  }),
  channel: {
    targeted_publications: true,
    without_namespace: { ...open, ...history, force_recovery: true, allow_tags_filter: true },
    namespaces: [{ name: 'map', subscription_type: 'map', map: { mode: 'persistent' } }],
  },
})

/** @param {object} params of `request`, or of another method */
const call = async (params, method = 'request') => {
  const { result, error } = await gateway.api(method, params)
  if (error) throw Object.assign(new Error(error.message), error)
  return result
}

let last = 0
const newUser = () => `u${++last}`

/** A connected client of a new user. @param {any} t @param {string} [sub] */
const enter = (t, sub = newUser()) => user(t, gateway, { sub })

/** The request that a client gets. @param {any} client */
const asked = async client => (await client.push('message')).message.data.$req

/** All workers know which requests have ended: a survey follows their ends. */
const settled = () => gateway.api('channels')

/** Sends an answer. @param {any} client @param {object} answer */
const ack = (client, answer) => client.call('rpc', { method: '$ack', data: answer })

t.test('a client answers', async t => {
  const client = await enter(t, 'anna')
  const id = client.connect.client
  const result = call({ client: id, method: 'where', data: { big: 1 } })
  const request = await asked(client)
  t.match(request, { id: /^[\w-]{22}$/, method: 'where', data: { big: 1 } })
  t.strictSame((await ack(client, { id: request.id, data: { x: 1 } })).rpc, {})
  t.strictSame(await result, {
    sent: 1,
    answered: 1,
    gone: 0,
    complete: true,
    truncated: false,
    answers: { [id]: { user: 'anna', data: { x: 1 } } },
  })
  t.strictSame((await ack(client, { id: request.id })).error, NOT_FOUND, 'a second answer')
})

t.test('answers are passed unchanged: numbers beyond doubles, base64, errors, or nothing', async t => {
  const client = await enter(t)
  const { client: id } = client.connect
  for (const answer of [
    '"data":{"n":12345678901234567890}',
    '"data":null',
    '"b64data":"AP8="',
    '"error":{"code":4001,"message":"no é"}',
    '',
  ]) {
    const response = fetch(`${gateway.url}/api/request`, {
      method: 'POST',
      headers: { 'X-API-Key': 'key' },
      body: JSON.stringify({ client: id, b64data: 'AP8=' }),
    })
    const { id: request, b64data } = await asked(client)
    t.equal(b64data, 'AP8=')
    const members = answer && `,${answer}`
    client.sendText(`{"id":${++client.lastId},"rpc":{"method":"$ack","data":{"id":"${request}"${members}}}}`)
    t.match(await (await response).text(), `"${id}":{"user":"u${last}"${members}}`)
  }
})

t.test('a Protobuf client answers with bytes of JSON', async t => {
  const client = await ProtobufClient.connected(gateway.ws, { token: token({ sub: 'proto' }) })
  t.teardown(() => client.socket.terminate())
  const result = call({ user: 'proto', method: 'm', data: [1] })
  const { $req } = JSON.parse((await client.push('message')).message.data.toString())
  t.match($req, { method: 'm', data: [1] })
  t.ok((await ack(client, Buffer.from(JSON.stringify({ id: $req.id, data: 'é' })))).rpc)
  t.match(Object.values((await result).answers), [{ user: 'proto', data: 'é' }])
})

t.test('a silent client ends the request at its timeout, without an error', async t => {
  const client = await enter(t)
  const begun = performance.now()
  const result = await call({ user: `u${last}`, timeout_ms: 100 })
  t.ok(performance.now() - begun >= 99)
  t.strictSame(result, { sent: 1, answered: 0, gone: 0, complete: false, truncated: false, answers: {} })
  const { id } = await asked(client)
  await settled()
  t.strictSame((await ack(client, { id })).error, NOT_FOUND, 'an answer after the timeout')
})

t.test('count: returns after so many answers', async t => {
  const name = newUser()
  const clients = await Promise.all([1, 2, 3, 4].map(() => enter(t, name)))
  const result = call({ user: name, count: 1, timeout_ms: 60_000 })
  const [first, second] = await Promise.all(clients.map(asked))
  t.equal(first.id, second.id)
  await ack(clients[2], { id: first.id, data: 'first' })
  t.match(await result, { sent: 4, answered: 1, gone: 0, complete: true })
  await settled()
  t.strictSame((await ack(clients[0], { id: first.id })).error, NOT_FOUND, 'a late answer')
})

t.test('a client that leaves is gone', async t => {
  const name = newUser()
  const clients = await Promise.all([1, 2, 3].map(() => enter(t, name)))
  const result = call({ user: name, timeout_ms: 60_000 })
  const { id } = await asked(clients[0])
  await ack(clients[0], { id })
  clients[1].socket.terminate()
  await gateway.api('disconnect', { user: name, client: clients[2].connect.client })
  t.match(await result, { sent: 3, answered: 1, gone: 2, complete: true })
})

t.test('one-way clients are not asked', async t => {
  const name = newUser()
  const query = new URLSearchParams({ cf_connect: JSON.stringify({ token: token({ sub: name }) }) })
  const one = await StreamClient.open(gateway.url, `/connection/uni_sse?${query}`)
  t.teardown(() => one.request.destroy())
  const { connect } = await one.next(message => message.connect)
  t.match(await call({ user: name }), { sent: 0, complete: true, answers: {} })
  await t.rejects(call({ client: connect.client }), NOT_FOUND)
})

t.test('an emulated session is asked by its session id', async t => {
  const client = await StreamClient.connected(gateway.url, 'http_stream', {
    token: token({ sub: newUser() }),
  })
  t.teardown(() => client.request.destroy())
  const result = call({ session: client.connect.session, method: 'm' })
  const { id } = await asked(client)
  await ack(client, { id, data: 1 })
  t.match(await result, { sent: 1, answered: 1, complete: true })
})

t.test('a channel: its subscribers get a publication', async t => {
  const clients = await Promise.all([1, 2, 3].map(() => enter(t)))
  for (const client of clients) await client.subscribe('asked')
  const result = call({ channel: 'asked', method: 'vote', data: 'question' })
  const pubs = await Promise.all(clients.map(async client => (await client.push('pub')).pub))
  for (const { data, tags, offset } of pubs)
    t.match({ data, tags, offset }, { data: 'question', tags: { $ack: /./, $method: 'vote' }, offset: 1 })
  const id = pubs[0].tags.$ack
  const later = await enter(t)
  const recovery = { recover: true, offset: 0, epoch: pubs[0].epoch }
  t.equal((await later.subscribe('asked', recovery)).subscribe.publications[0].tags.$ack, id)
  t.strictSame((await ack(later, { id })).error, NOT_FOUND, 'a client that recovers the publication')
  for (const client of clients) t.ok((await ack(client, { id, data: 1 })).rpc)
  t.match(await result, { sent: 3, answered: 3, complete: true })
  await t.rejects(call({ channel: 'nowhere:1', data: 1 }), error(102, 'unknown channel'))
  await t.rejects(call({ channel: 'map:1', data: 1 }), BAD_REQUEST)
  await t.rejects(call({ channel: 'asked' }), { code: 107 }, 'a publication needs data')
})

t.test('publish with ack', async t => {
  const clients = await Promise.all([1, 2, 3, 4, 5].map(() => enter(t)))
  for (const client of clients) await client.subscribe('acked')
  const published = call(
    { channel: 'acked', data: 1, tags: { a: 'b' }, ack: { timeout_ms: 1500 } },
    'publish',
  )
  const pubs = await Promise.all(clients.map(async client => (await client.push('pub')).pub))
  t.match(pubs[0], { data: 1, tags: { a: 'b', $ack: /./ } })
  t.notOk('$method' in pubs[0].tags)
  for (const client of clients.slice(1)) t.ok((await ack(client, { id: pubs[0].tags.$ack })).rpc)
  t.match(await published, {
    offset: 1,
    epoch: /./,
    acks: { sent: 5, answered: 4, gone: 0, complete: false },
  })
  const nobody = await call({ channel: 'nobody', data: 1, ack: {} }, 'publish')
  t.match(nobody, { offset: 1, acks: { sent: 0, answered: 0, complete: true } })
  await t.rejects(call({ channels: ['a'], data: 1, ack: {} }, 'broadcast'), { code: 108 })
})

t.test('subscribers whose filter hides the publication are not asked', async t => {
  const [all, some] = await Promise.all([enter(t), enter(t)])
  await all.subscribe('filtered')
  t.ok((await some.subscribe('filtered', { tf: { key: 'kind', cmp: 'eq', val: 'x' } })).subscribe)
  const published = call({ channel: 'filtered', data: 1, tags: { kind: 'y' }, ack: {} }, 'publish')
  const { tags } = (await all.push('pub')).pub
  await ack(all, { id: tags.$ack })
  t.match(await published, { acks: { sent: 1, answered: 1, complete: true } })
})

t.test('subscribers that a publication excludes are not asked', async t => {
  const [one, two] = await Promise.all([enter(t, 'one'), enter(t, 'two')])
  for (const client of [one, two]) await client.subscribe('aimed')
  for (const target of [
    { exclude_client: one.connect.client },
    { exclude_user: 'one' },
    { users: ['two'] },
  ]) {
    const published = call({ channel: 'aimed', data: 1, ack: {}, ...target }, 'publish')
    await ack(two, { id: (await two.push('pub')).pub.tags.$ack })
    t.match(await published, { acks: { sent: 1, answered: 1, complete: true } })
  }
})

t.test('another client cannot answer, and malformed answers count as none', async t => {
  const [client, foreign] = await Promise.all([enter(t), anonymous(t, gateway)])
  const result = call({ client: client.connect.client, timeout_ms: 60_000 })
  const { id } = await asked(client)
  t.strictSame((await ack(foreign, { id })).error, NOT_FOUND)
  t.strictSame((await ack(client, { id: 'unknown' })).error, NOT_FOUND)
  const wrong = [
    undefined,
    [],
    {},
    { id: 7 },
    { id, data: 1, error: { code: 1, message: '' } },
    { id, error: 'no' },
    { id, error: { code: '1' } },
    { id, b64data: '?' },
    { id, data: 'x'.repeat(65 * 1024) },
  ]
  for (const answer of wrong) t.strictSame((await ack(client, answer)).error, BAD_REQUEST)
  await ack(client, { id, data: 'x'.repeat(63 * 1024) })
  t.match(await result, { answered: 1, complete: true })
})

t.test('invalid requests are refused', async t => {
  const wrong = [
    {},
    { user: 'a', client: 'b' },
    { user: 'a', timeout_ms: 60_001 },
    { user: 'a', method: 'é'.repeat(65) },
  ]
  for (const params of wrong) await t.rejects(call(params), { code: 107, message: /^bad request: ./ })
  await t.rejects(call({ user: 'a', data: 'x'.repeat(65 * 1024) }), error(106, 'limit exceeded'))
  await t.rejects(call({ client: 'nobody' }), NOT_FOUND)
  await t.rejects(call({ session: 'nobody' }), NOT_FOUND)
  t.match(await call({ user: 'nobody' }), { sent: 0, complete: true })
})

t.test('more clients, or more requests, than the limits: nothing is sent', async t => {
  const LIMIT = error(106, 'limit exceeded')
  const name = newUser()
  const clients = await Promise.all([1, 2, 3, 4, 5, 6].map(() => enter(t, name)))
  for (const client of clients) await client.subscribe('crowd')
  await t.rejects(call({ user: name }), LIMIT)
  await t.rejects(call({ channel: 'crowd', data: 1 }), LIMIT)
  for (const client of clients) await roundTrip(client)
  t.ok(clients.every(({ messages }) => messages.every(({ push }) => !push)))
  const one = clients[0]
  const pending = [1, 2, 3, 4].map(() => call({ client: one.connect.client, timeout_ms: 60_000 }))
  const ids = []
  for (const _ of pending) ids.push((await asked(one)).id)
  await t.rejects(call({ client: one.connect.client }), LIMIT)
  for (const id of ids) await ack(one, { id })
  for (const result of pending) t.match(await result, { answered: 1 })
  const again = call({ client: one.connect.client })
  await ack(one, { id: (await asked(one)).id })
  t.match(await again, { answered: 1 })
})

t.test('in a batch', async t => {
  const client = await enter(t)
  const commands = [
    { request: { user: `u${last}`, method: 'a' } },
    { publish: { channel: 'x', data: 1, ack: {} } },
  ]
  const replies = gateway.api('batch', { commands, parallel: true })
  await ack(client, { id: (await asked(client)).id, data: 1 })
  t.match((await replies).replies, [{ request: { answered: 1 } }, { publish: { acks: { sent: 0 } } }])
})

t.test('metrics', async t => {
  const outcomes = {
    requests: ['complete', 'timeout', 'failed'],
    acks: ['accepted', 'unexpected', 'invalid'],
  }
  const names = Object.entries(outcomes).flatMap(([name, list]) =>
    list.map(outcome => `halley_client_${name}_total{outcome="${outcome}"} `),
  )
  await until(async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text()
    return names.every(name => text.includes(name))
  })
  t.pass()
})

t.test('switched off by a reload: request is not available, and $ack is an ordinary method', async t => {
  const client = await enter(t)
  const pending = call({ user: `u${last}`, timeout_ms: 300 })
  const { id } = await asked(client)
  const file = join(gateway.folder, 'config.json')
  const config = JSON.parse(await readFile(file, 'utf8'))
  config.client.acks.enabled = false
  await writeFile(`${file}.new`, JSON.stringify(config))
  await rename(`${file}.new`, file)
  gateway.process.kill('SIGHUP')
  await gateway.line(({ msg }) => msg === 'configuration reloaded')
  await t.rejects(call({ user: 'a' }), error(108, 'not available'))
  await t.rejects(call({ channel: 'a', data: 1 }), error(108, 'not available'))
  await t.rejects(call({ channel: 'a', data: 1, ack: {} }, 'publish'), error(108, 'not available'))
  t.strictSame((await ack(client, { id })).rpc, { data: 'of the handler' })
  t.match(await pending, { sent: 1, answered: 0, complete: false })
})
