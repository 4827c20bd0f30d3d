import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { createInterface } from 'node:readline'
import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { withoutProgram } from '../../kit/needs.js'
import { clients, poll, query, request } from '../../kit/uni-poll-client.js'
import { history, open } from '../session/support.js'

const docs = readFileSync(new URL('../../../docs/uni-poll.md', import.meta.url), 'utf8')

const config = (/** @type {string} */ driver) => ({
  workers: 2,
  uni_poll: { enabled: true, timeout: '15s', max_timeout: '20s', max_request_body_size: 20_000 },
  http_server: { driver },
  client: {
    allow_anonymous_connect_without_token: true,
    allowed_origins: ['https://good.example'],
    channel_limit: 50,
  },
  channel: {
    without_namespace: { ...open, ...history },
    namespaces: [{ name: 'live', ...open }],
  },
})

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, config(driver))
    const endpoint = `${gateway.url}/connection/uni_poll`
    const publish = async (/** @type {string} */ channel, /** @type {any} */ data, more = {}) => {
      const { error } = await gateway.api('publish', { channel, data, ...more })
      t.notOk(error)
    }

    t.test('a poll without a cursor starts now; a cursor continues on any worker', async t => {
      await publish('go-on', 'before')
      const first = await poll(gateway, { channel: 'go-on', timeout: 0 })
      t.equal(first.status, 200)
      t.same(first.body, { publications: [], cursor: first.cursor })
      let { cursor } = first
      for (let n = 1; n <= 20; n++) {
        await publish('go-on', { n })
        const answer = await poll(gateway, { channel: 'go-on', cursor })
        t.same(answer.body.publications, [{ channel: 'go-on', data: { n }, offset: n + 1 }])
        cursor = answer.cursor
      }
      const again = await poll(gateway, { channel: 'go-on', cursor: first.cursor })
      t.equal(again.data.length, 20, 'an old cursor stays valid')
      t.same((await poll(gateway, { channel: 'go-on', cursor, timeout: 0 })).data, [])
    })

    t.test('a waiting poll is answered with the first publication', async t => {
      const started = performance.now()
      const polls = Array.from({ length: 6 }, () => poll(gateway, { channel: 'wait' }))
      await clients(gateway, 'wait', 6)
      await publish('wait', 1)
      const answers = await Promise.all(polls)
      for (const { data } of answers) t.same(data, [1])
      t.equal(new Set(answers.map(({ cursor }) => cursor)).size, 1)
      t.ok(performance.now() - started < 10_000)
    })

    t.test('a poll gets an empty response with the same cursor after its timeout', async t => {
      const { cursor } = await poll(gateway, { channel: 'empty', timeout: 0 })
      for (const timeout of ['0', '0.3', '.2', '1.']) {
        const started = performance.now()
        const answer = await poll(gateway, { channel: 'empty', cursor, timeout })
        const took = performance.now() - started
        t.same(answer.body, { publications: [], cursor })
        t.ok(took >= Number(timeout) * 1000 - 5, `${timeout}: ${took}`)
        t.ok(took < 10_000, `${timeout}: ${took}, not the 15 s that it would take by default`)
      }
      await publish('empty', 'late')
      t.same((await poll(gateway, { channel: 'empty', cursor })).data, ['late'])
    })

    t.test('since selects the earliest publication or an offset', async t => {
      for (let n = 1; n <= 5; n++) await publish('since', n)
      t.same((await poll(gateway, { channel: 'since', since: 'earliest' })).data, [1, 2, 3, 4, 5])
      t.same((await poll(gateway, { channel: 'since', since: 0 })).data, [1, 2, 3, 4, 5])
      t.same((await poll(gateway, { channel: 'since', since: 3 })).data, [4, 5])
      const top = await poll(gateway, { channel: 'since', since: 5, timeout: 0 })
      t.same([top.data, top.body.lost], [[], undefined])
      const beyond = await poll(gateway, { channel: 'since', since: 6 })
      t.same([beyond.data, beyond.body.lost], [[], ['since']])
      const { cursor } = await poll(gateway, { channel: 'since', since: 2, timeout: 0 })
      const both = await poll(gateway, { channel: 'since', since: 'earliest', cursor, timeout: 0 })
      t.same(both.data, [], 'a cursor overrides since')
      const waiting = poll(gateway, { channel: 'since', since: 5 })
      await publish('since', 6)
      t.same((await waiting).data, [6])
      const nothing = await poll(gateway, { channel: 'never', since: 'earliest', timeout: 0 })
      t.same([nothing.data, nothing.body.lost], [[], undefined])
    })

    t.test('a poll of several channels has a position in each', async t => {
      const channel = ['many-a', 'many-b', 'live:many', 'many-a']
      const first = poll(gateway, { channel })
      await clients(gateway, 'live:many', 1)
      await publish('many-b', 'b1')
      const one = await first
      t.same(one.body.publications, [{ channel: 'many-b', data: 'b1', offset: 1 }])
      await publish('many-a', 'a1')
      await publish('many-a', 'a2')
      await publish('many-b', 'b2')
      const two = await poll(gateway, { channel, cursor: one.cursor })
      const byName = two.body.publications.sort((/** @type {any} */ a, /** @type {any} */ b) =>
        a.data.localeCompare(b.data),
      )
      t.same(byName, [
        { channel: 'many-a', data: 'a1', offset: 1 },
        { channel: 'many-a', data: 'a2', offset: 2 },
        { channel: 'many-b', data: 'b2', offset: 2 },
      ])
      const other = { channel: ['many-b', 'many-c'], cursor: two.cursor, timeout: 0 }
      const three = await poll(gateway, other)
      t.same(three.data, [], 'a cursor drops channels that the poll does not name')
      await publish('many-c', 'c1')
      await publish('many-a', 'a3')
      const four = await poll(gateway, { channel: ['many-a', 'many-c'], cursor: three.cursor })
      // a3 may reach the worker of this poll late.
      const data = four.data.filter((/** @type {string} */ text) => text !== 'a3')
      t.same(data, ['c1'], 'and starts now when it is named again')
    })

    t.test('without history, a poll gets the publications made while it waits', async t => {
      await publish('live:x', 'before')
      const waiting = poll(gateway, { channel: 'live:x', since: 'earliest' })
      await clients(gateway, 'live:x', 1)
      await publish('live:x', 'now')
      const answer = await waiting
      t.same(answer.body.publications, [{ channel: 'live:x', data: 'now' }])
      const next = await poll(gateway, { channel: 'live:x', cursor: answer.cursor, timeout: 0 })
      t.same(next.body, { publications: [], cursor: answer.cursor })
    })

    t.test('publications of one turn are sent in one response', async t => {
      const waiting = poll(gateway, { channel: ['live:go', 'go'] })
      await clients(gateway, 'live:go', 1)
      await gateway.api('broadcast', { channels: ['go', 'live:go'], data: 1 })
      t.equal((await waiting).data.length, 2)
    })

    t.test('payloads are delivered unchanged', async t => {
      const waiting = poll(gateway, { channel: 'bytes' })
      await clients(gateway, 'bytes', 1)
      const text = '{"big":12345678901234567890,"f":1.0,  "é":"🎈\\u00e9"}'
      await request(`${gateway.url}/api/publish`, {
        method: 'POST',
        headers: { 'X-API-Key': 'key' },
        body: `{"channel":"bytes","tags":{"ü":"ß"},"data":${text}}`,
      })
      const answer = await waiting
      const expected = `{"publications":[{"channel":"bytes","data":${text},"offset":1,"tags":{"ü":"ß"}}],"cursor":"`
      t.equal(answer.text.slice(0, expected.length), expected)
      const bytes = Buffer.from([0, 255, 128, 10])
      await gateway.api('publish', { channel: 'bytes', b64data: bytes.toString('base64') })
      const next = await poll(gateway, { channel: 'bytes', cursor: answer.cursor })
      t.same(next.body.publications, [{ channel: 'bytes', b64data: bytes.toString('base64'), offset: 2 }])
      await gateway.api('publish', { channel: 'bytes', data: 'unkept', skip_history: true })
      await publish('bytes', 'kept')
      t.same((await poll(gateway, { channel: 'bytes', cursor: next.cursor })).data, ['kept'])
    })

    t.test('POST accepts the same parameters as JSON or a form; the body overrides the query', async t => {
      await publish('post', 'one')
      const post = (/** @type {string} */ body, /** @type {string} */ type, params = {}) =>
        poll(gateway, params, { method: 'POST', headers: type ? { 'Content-Type': type } : {}, body })
      const json = 'application/json'
      const form = 'application/x-www-form-urlencoded'
      const wants = { since: 'earliest', timeout: 0 }
      const bodies = [
        { channels: ['post'], ...wants },
        { channels: 'post', ...wants },
        { channel: 'post', ...wants },
        { channel: ['post', 'post'], since: 0, timeout: 0.5, token: null, cursor: null },
      ]
      for (const body of bodies) {
        t.same((await post(JSON.stringify(body), json)).data, ['one'], JSON.stringify(body))
        t.same((await post(JSON.stringify(body), form)).data, ['one'], 'as curl sends it')
      }
      const params = query({ channel: ['post', 'other'], ...wants }).toString()
      t.same((await post(params, form)).data, ['one'])
      t.same((await post(params, '')).data, ['one'])
      t.same((await post('', '', { channel: 'post', ...wants })).data, ['one'], 'an empty body')
      const mixed = await post('{"channels":["post"]}', json, { channel: 'nope:x', ...wants })
      t.same(mixed.data, ['one'])
      const { cursor } = mixed
      const next = await post(JSON.stringify({ cursor, timeout: 0 }), json, { channel: 'post' })
      t.same(next.body, { publications: [], cursor })
    })

    t.test('an invalid request gets 400 with the reason', async t => {
      const channel = 'bad'
      /** @type {[RegExp, ...any[]][]} parameters of GET */
      const queries = [
        [/channel is required/, {}, { timeout: 0, channel: [] }],
        [/name is empty/, { channel: '' }],
        [
          /timeout/,
          ...['-1', 'soon', '', '1e3', '0x1', 'NaN', '1 ', '.'].map(timeout => ({ channel, timeout })),
        ],
        [/since/, ...['-1', 'latest', '', '1.5', '99999999999999999999'].map(since => ({ channel, since }))],
        [/name/, { channel: 'ü' }, { channel: 'x'.repeat(256) }],
        [/cursor/, { channel, cursor: 'nonsense' }],
      ]
      /** @type {[RegExp, ...any[]][]} bodies of POST: JSON, or raw text */
      const bodies = [
        [/JSON object/, '{', '[]', 'null', '7', '"bad"', '{"channel":"bad"', 'channel=bad'],
        [/channel is required/, { channels: [] }],
        [/not a string/, ...[7, [['a', 1]], ['a', null], { a: 1 }].map(channels => ({ channels }))],
        [/timeout/, ...[-1, [], true].map(timeout => ({ channel, timeout }))],
        [/since/, { channel, since: 1.5 }, { channel, since: {} }],
        [/cursor/, { channel, cursor: 1 }],
        [/token/, { channel, token: 1 }],
      ]
      const post = (/** @type {string} */ body, type = 'application/json') => ({
        method: 'POST',
        body,
        headers: { 'Content-Type': type },
      })
      const refused = async (/** @type {RegExp} */ message, /** @type {any} */ params, options = {}) => {
        const answer = await poll(gateway, params, options)
        t.match(answer, { status: 400, body: { error: { code: 107, message } } }, answer.text)
        t.match(answer.headers['content-type'], 'application/json')
      }
      for (const [line, ...list] of queries) for (const params of list) await refused(line, params)
      for (const [line, ...list] of bodies)
        for (const body of list)
          await refused(line, {}, post(typeof body === 'string' ? body : JSON.stringify(body)))
      await refused(/channel is required/, {}, post('\0\x01\xff', 'application/octet-stream'))
      const many = Array.from({ length: 51 }, (_, n) => `many${n}`)
      const tooMany = await poll(gateway, {}, post(JSON.stringify({ channels: many })))
      t.match(tooMany, { status: 400, body: { error: { code: 106 } } })
      const channels = many.slice(1)
      const enough = await poll(gateway, {}, post(JSON.stringify({ channels, timeout: 0 })))
      t.equal(enough.status, 200)
    })

    t.test('unknown namespaces get 404, other methods 405, overlong bodies 413', async t => {
      const nowhere = await poll(gateway, { channel: 'nope:x' })
      t.match(nowhere, { status: 404, body: { error: { code: 102, message: /"nope:x"/ } } })
      for (const method of ['PUT', 'DELETE']) {
        const answer = await poll(gateway, { channel: 'a' }, { method })
        t.match(answer, { status: 405, headers: { allow: 'GET, POST, OPTIONS' } })
      }
      const long = await poll(gateway, {}, { method: 'POST', body: ' '.repeat(20_001) })
      t.match(long, { status: 413, body: { error: {} } })
    })

    t.test('responses are not cached; pages of allowed origins may read them', async t => {
      const answer = await poll(gateway, { channel: 'cors', timeout: 0 })
      t.match(answer.headers, {
        'content-type': 'application/json',
        'cache-control': /no-store/,
        pragma: 'no-cache',
        expires: '0',
      })
      t.notOk(answer.headers['access-control-allow-origin'])
      const origin = 'https://good.example'
      const headers = { Origin: origin }
      const waiting = poll(gateway, { channel: 'cors', cursor: answer.cursor }, { headers })
      await publish('cors', 1)
      t.match((await waiting).headers, {
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        vary: 'Origin',
        'cache-control': /no-store/,
      })
      const refused = await poll(gateway, {}, { headers })
      t.match(refused, { status: 400, headers: { 'access-control-allow-origin': origin } })
      t.match(refused.headers['cache-control'], 'no-store')
      const evil = { Origin: 'https://evil.example' }
      const other = await poll(gateway, { channel: 'cors', timeout: 0 }, { headers: evil })
      t.notOk(other.headers['access-control-allow-origin'])
      const requested = { ...headers, 'Access-Control-Request-Headers': 'authorization' }
      const preflight = await request(endpoint, { method: 'OPTIONS', headers: requested })
      t.match(preflight, {
        status: 204,
        headers: {
          'access-control-allow-methods': 'GET, POST, OPTIONS',
          'access-control-allow-headers': 'authorization',
          'access-control-allow-origin': origin,
        },
      })
    })

    t.test('the curl commands of docs/uni-poll.md work', { skip: withoutProgram('curl') }, async t => {
      const [, script] = docs.match(/```sh\n(poll=[\s\S]*?)```/) ?? []
      const shell = spawn('sh', ['-c', script.replace('http://127.0.0.1:8000', gateway.url)])
      t.teardown(() => shell.kill('SIGKILL'))
      const lines = createInterface({ input: shell.stdout })[Symbol.asyncIterator]()
      await clients(gateway, 'news', 1)
      for (let n = 1; n <= 5; n++) {
        await publish('news', n)
        const { value } = await lines.next()
        t.match(JSON.parse(value).publications, [{ data: n }])
      }
      shell.kill('SIGKILL')
      await publish('news', 'bye')
    })

    t.test('a request with an incomplete body starts no poll', async t => {
      const { hostname, port } = new URL(gateway.url)
      const head = `POST /connection/uni_poll?channel=cut HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n`
      const socket = net.connect(Number(port), hostname)
      socket.end(`${head}{"channels":`)
      socket.resume()
      await once(socket, 'close')
      t.same((await gateway.api('channels', { pattern: 'cut' })).result.channels, {})
    })
  })
}
