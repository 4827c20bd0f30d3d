import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { KEY as key, startApi } from './support.js'

const METHODS = `publish broadcast subscribe unsubscribe disconnect refresh presence presence_stats history
  history_remove channels info rpc batch`.split(/\s+/)

for (const driver of drivers) {
  t.test(`server ${driver}`, async t => {
    const api = await startApi(t, { workers: driver === 'uws' ? 2 : 1, http_server: { driver } })
    t.test('accepts the key in the query, X-API-Key and Authorization', async t => {
      const right = `?api_key=${encodeURIComponent(key)}`
      for (const [expected, headers, query = ''] of /** @type {[number, any, string?][]} */ ([
        [200, { 'x-api-key': key }],
        [200, { authorization: `apikey ${key}` }],
        [200, { authorization: `ApiKey ${key}` }],
        [200, {}, right],
        [200, { 'x-api-key': 'wrong' }, right],
        [200, { authorization: 'apikey wrong' }, right],
        [401, {}],
        [401, { 'x-api-key': 'wrong' }],
        [401, { 'x-api-key': key.replace('k', 'K') }],
        [401, { 'x-api-key': `${key} x` }],
        [401, { authorization: `Bearer ${key}` }],
        [401, { authorization: key }],
        // No fallback from a wrong X-API-Key.
        [401, { 'x-api-key': 'wrong', authorization: `apikey ${key}` }],
        [401, {}, '?api_key=wrong'],
      ])) {
        const { status } = await api.request('POST', `/api/channels${query}`, '{}', headers)
        t.equal(status, expected, `${JSON.stringify(headers)} ${query}`)
      }
    })

    t.test('rejects a key that ends in a multi-byte character', async t => {
      for (const last of ['é', '€']) {
        const wrong = key.slice(0, -1) + last
        // Header values are bytes: latin1 keeps the UTF-8 bytes unchanged.
        const bytes = Buffer.from(wrong).toString('latin1')
        for (let i = 0; i < 8; i++) {
          const status = async (headers, query = '') =>
            (await api.request('POST', `/api/channels${query}`, '{}', headers)).status
          t.equal(await status({ 'x-api-key': key }), 200)
          t.equal(await status({}, `?api_key=${encodeURIComponent(wrong)}`), 401, `${last} in the query`)
          t.equal(await status({ 'x-api-key': key }), 200)
          t.equal(await status({ 'x-api-key': bytes }), 401, `${last} in the header`)
        }
      }
    })

    t.test('methods accept only POST, at their own path', async t => {
      const allowed = []
      for (const path of ['', ...METHODS.map(name => `/${name}`)]) {
        for (const method of ['GET', 'PUT', 'DELETE']) {
          const { status } = await api.request(method, `/api${path}`)
          if (status !== 405) allowed.push(`${method} /api${path}: ${status}`)
        }
      }
      t.same(allowed, [])
      t.equal((await api.request('POST', '/api/nothing', '{}')).status, 404)
      t.equal((await api.request('POST', '/api/send_push_notification', '{}')).status, 404)
      t.equal((await api.request('POST', '/api/publish/x', '{}')).status, 404)
    })

    t.test('rejects malformed and mistyped bodies with 400', async t => {
      const bodies = ['', ' ', '{} x', ...'{ x [] "a" 1 null {}{} {"channel":1} {"channel":["a"]}'.split(' ')]
      const taken = []
      const refuse = async (name, body) => {
        const { status, text } = await api.request('POST', `/api/${name}`, body)
        if (status !== 400 || !text.startsWith('Bad Request: '))
          taken.push(`${name} ${body}: ${status} ${text}`)
      }
      for (const name of ['publish', 'history', 'subscribe', 'presence'])
        for (const body of bodies) await refuse(name, body)
      // Info has no fields, but requires an object.
      await refuse('info', '')

      const each = (start, members) => members.split(/\s+/).map(member => `${start}${member}}`)
      const wrong = {
        publish: each(
          '{"channel":"a","data":1,',
          `"skip_history":1 "tags":[] "tags":{"a":1} "b64data":1 "delta":"x" "idempotency_key":{} "version":"1"
          "version":-1 "version":1.5 "version":18446744073709551616`,
        ),
        broadcast: each('{"data":1,"channels":', '"a" [1] {}'),
        history: each(
          '{"channel":"his:a",',
          `"limit":"1" "limit":3000000000 "since":1 "since":{"offset":"1"} "since":{"offset":-1} "reverse":0`,
        ),
        disconnect: each(
          '{"user":"a",',
          '"user":1 "disconnect":4000 "disconnect":{"code":"4000"} "whitelist":"a"',
        ),
        refresh: each('{"user":"a",', '"expired":1 "expire_at":"1"'),
        subscribe: each('{"channel":"a","override":', '{"presence":true} {"presence":{"value":1}}'),
        batch: each(
          '{"commands":',
          '{} [1] [[]] [{"publish":1}] [{"publish":{"channel":1}}] [],"parallel":1',
        ),
        channels: ['{"pattern":1}'],
      }
      for (const [name, texts] of Object.entries(wrong)) for (const text of texts) await refuse(name, text)
      t.same(taken, [])
    })

    t.test('null means absent; unknown fields are ignored', async t => {
      t.equal(
        await api.text('history', '{"channel":null,"limit":null}'),
        '{"error":{"code":107,"message":"bad request: channel is missing"}}',
      )
      t.equal(
        await api.text(
          'publish',
          '{"channel":"plain","data":1,"tags":null,"version":null,"x":{"y":[]},"all_users":true}',
        ),
        '{"result":{}}',
      )
    })

    t.test('errors have HTTP status 200, except in transport mode', async t => {
      const ask = (body, headers) =>
        api.request('POST', '/api/history', JSON.stringify(body), { 'x-api-key': key, ...headers })
      const transport = { 'x-centrifugo-error-mode': 'transport' }

      const plain = await ask({ channel: 'nowhere:a' })
      t.equal(plain.status, 200)
      t.equal(plain.headers['content-type'], 'application/json')
      t.equal(plain.text, '{"error":{"code":102,"message":"unknown channel"}}')

      const rows = [
        [{ channel: 'nowhere:a' }, 404, { code: 102, message: 'unknown channel' }],
        [{ channel: '' }, 400, { code: 107, message: 'bad request: channel is missing' }],
        [{ channel: 'plain' }, 400, { code: 108, message: 'not available' }],
        [
          { channel: 'his:a', since: { offset: 1, epoch: 'wrong' }, limit: 1 },
          416,
          { code: 112, message: 'unrecoverable position' },
        ],
      ]
      for (const [body, status, error] of rows) {
        const answer = await ask(body, transport)
        t.equal(answer.status, status)
        t.equal(answer.text, JSON.stringify(error))
      }
      const headers = { 'x-api-key': key, ...transport }
      const rpc = await api.request('POST', '/api/rpc', '{"method":"x"}', headers)
      t.match(rpc, { status: 404, text: '{"code":104,"message":"not found"}' })
      const published = await api.request('POST', '/api/publish', '{"channel":"nowhere:a","data":1}', headers)
      t.equal(published.status, 404)
      t.equal((await ask({ channel: 'his:a' }, transport)).status, 200, 'results are unchanged')
      t.equal((await ask({ channel: 'plain' }, { 'x-centrifugo-error-mode': 'other' })).status, 200)
    })

    t.test('limits the body to 16 MB', async t => {
      const data = 'x'.repeat(16 * 1024 * 1024)
      const publish = data => api.request('POST', '/api/publish', JSON.stringify({ channel: 'plain', data }))
      t.equal((await publish(data)).status, 413)
      t.equal((await publish(data.slice(100))).text, '{"result":{}}')
    })

    t.test('methods of map and shared-poll channels reject other channels', async t => {
      const maps = 'publish remove read_state read_stream stats clear'.split(' ').map(name => `map_${name}`)
      for (const name of [...maps, 'shared_poll_publish']) {
        t.equal((await api.call(name, { channel: 'plain', key: 'a', data: 1 })).error.code, 107, name)
        t.equal((await api.call(name, { channel: 'nowhere:a' })).error.code, 102, name)
      }
    })

    t.test('the legacy format accepts a sequence of commands', async t => {
      const ask = body => api.request('POST', '/api', body)

      const one = await ask('{"id":1,"method":"publish","params":{"channel":"plain","data":{"a":1}}}')
      t.equal(one.text, '{"id":1,"result":{}}')
      t.equal(one.headers['content-type'], 'application/json')
      const several = await ask(
        '{"id":1,"method":"PUBLISH","params":{"channel":"nowhere:a","data":{}}}\n' +
          '{"method":"presence_stats","params":{"channel":"plain"}} {"id":3,"method":"Channels"}{"id":4,"method":"rpc","params":null}\n',
      )
      t.same(
        several.text.split('\n').map(line => JSON.parse(line)),
        [
          { id: 1, error: { code: 102, message: 'unknown channel' } },
          { result: { num_clients: 0, num_users: 0 } },
          { id: 3, result: { channels: {} } },
          { id: 4, error: { code: 104, message: 'not found' } },
        ],
      )

      const refused = [
        ...['', ' \n', '{', '[]', '{}', '{"method":"nothing"}', 'x{"method":"info"}', '{"method":"info" x}'],
        ...[',{"method":"info"}', '}', '{"method":"nothing"}'].map(rest => `{"method":"info"}${rest}`),
        '{"id":"1","method":"info"}',
        '{"method":"info","params":1}',
        '{"method":"publish","params":{"channel":1}}',
        '{"method":"info","params":{}}"unclosed',
      ]
      for (const body of refused) t.equal((await ask(body)).status, 400, body)
      t.equal((await api.request('POST', '/api', '{"method":"info"}', {})).status, 401)
    })

    t.test('the gateway logs no errors', async t => t.same(api.failures(), []))
  })
}
