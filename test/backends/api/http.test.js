import t from 'tap'
import { drivers } from '../../kit/drivers.js'

import { KEY as key, startApi } from './support.js'

const METHODS = [
  'publish',
  'broadcast',
  'subscribe',
  'unsubscribe',
  'disconnect',
  'refresh',
  'presence',
  'presence_stats',
  'history',
  'history_remove',
  'channels',
  'info',
  'rpc',
  'batch',
]

for (const driver of drivers) {
  t.test(`server ${driver}`, async t => {
    const api = await startApi(t, { workers: driver === 'uws' ? 2 : 1, http_server: { driver } })
    t.test('the key is taken from three places', async t => {
      const status = async (headers, query = '') =>
        (await api.request('POST', `/api/channels${query}`, '{}', headers)).status

      t.equal(await status({ 'x-api-key': key }), 200)
      t.equal(await status({ authorization: `apikey ${key}` }), 200)
      t.equal(await status({ authorization: `ApiKey ${key}` }), 200)
      t.equal(await status({}, `?api_key=${encodeURIComponent(key)}`), 200)
      t.equal(
        await status({ 'x-api-key': 'wrong' }, `?api_key=${encodeURIComponent(key)}`),
        200,
        'the query rescues',
      )
      t.equal(await status({ authorization: 'apikey wrong' }, `?api_key=${encodeURIComponent(key)}`), 200)

      t.equal(await status({}), 401)
      t.equal(await status({ 'x-api-key': 'wrong' }), 401)
      t.equal(await status({ 'x-api-key': key.replace('k', 'K') }), 401, 'of the same length')
      t.equal(await status({ 'x-api-key': `${key} x` }), 401)
      t.equal(await status({ authorization: `Bearer ${key}` }), 401)
      t.equal(await status({ authorization: key }), 401)
      t.equal(
        await status({ 'x-api-key': 'wrong', authorization: `apikey ${key}` }),
        401,
        'a wrong header is not passed over',
      )
      t.equal(await status({}, '?api_key=wrong'), 401)
      t.match(
        (await api.request('POST', '/api/info', '{}', {})).text,
        /^Unauthorized: the API key is missing/,
      )
    })

    t.test('a key whose last character has more bytes is another key', async t => {
      for (const last of ['é', '€']) {
        const wrong = key.slice(0, -1) + last
        // Header values are bytes: latin1 passes these of UTF-8 on unchanged.
        const bytes = Buffer.from(wrong).toString('latin1')
        for (let i = 0; i < 8; i++) {
          t.equal((await api.request('POST', '/api/channels', '{}')).status, 200)
          const byQuery = await api.request(
            'POST',
            `/api/channels?api_key=${encodeURIComponent(wrong)}`,
            '{}',
            {},
          )
          t.equal(byQuery.status, 401, `${last} in the query`)
          t.equal((await api.request('POST', '/api/channels', '{}')).status, 200)
          const byHeader = await api.request('POST', '/api/channels', '{}', { 'x-api-key': bytes })
          t.equal(byHeader.status, 401, `${last} in the header`)
        }
      }
    })

    t.test('every method is POST, and below its own path', async t => {
      const allowed = []
      for (const path of ['', ...METHODS.map(name => `/${name}`)]) {
        for (const method of ['GET', 'PUT', 'DELETE']) {
          const { status } = await api.request(method, `/api${path}`)
          if (status !== 405) allowed.push(`${method} /api${path}: ${status}`)
        }
      }
      t.same(allowed, [])
      t.equal((await api.request('POST', '/api/nothing', '{}')).status, 404)
      t.equal((await api.request('POST', '/api/connections', '{}')).status, 404)
      t.equal((await api.request('POST', '/api/publish/x', '{}')).status, 404)
    })

    t.test('bodies that are no object of the right shape are refused with 400', async t => {
      const bodies = [
        '',
        ' ',
        '{',
        'x',
        '[]',
        '"a"',
        '1',
        'null',
        '{}{}',
        '{} x',
        '{"channel":1}',
        '{"channel":["a"]}',
      ]
      const taken = []
      const refuse = async (name, body) => {
        const { status, text } = await api.request('POST', `/api/${name}`, body)
        if (status !== 400 || !text.startsWith('Bad Request: '))
          taken.push(`${name} ${body}: ${status} ${text}`)
      }
      for (const name of ['publish', 'history', 'subscribe', 'presence'])
        for (const body of bodies) await refuse(name, body)
      // Info has no fields, but wants an object, too.
      await refuse('info', '')

      const wrong = {
        publish: [
          '{"channel":"a","data":1,"skip_history":1}',
          '{"channel":"a","data":1,"tags":[]}',
          '{"channel":"a","data":1,"tags":{"a":1}}',
          '{"channel":"a","data":1,"b64data":1}',
          '{"channel":"a","data":1,"version":"1"}',
          '{"channel":"a","data":1,"version":-1}',
          '{"channel":"a","data":1,"version":1.5}',
          '{"channel":"a","data":1,"version":18446744073709551616}',
          '{"channel":"a","data":1,"delta":"x"}',
          '{"channel":"a","data":1,"idempotency_key":{}}',
        ],
        broadcast: ['{"channels":"a","data":1}', '{"channels":[1],"data":1}', '{"channels":{},"data":1}'],
        history: [
          '{"channel":"his:a","limit":"1"}',
          '{"channel":"his:a","limit":3000000000}',
          '{"channel":"his:a","since":1}',
          '{"channel":"his:a","since":{"offset":"1"}}',
          '{"channel":"his:a","since":{"offset":-1}}',
          '{"channel":"his:a","reverse":0}',
        ],
        disconnect: [
          '{"user":1}',
          '{"user":"a","disconnect":4000}',
          '{"user":"a","disconnect":{"code":"4000"}}',
          '{"user":"a","whitelist":"a"}',
        ],
        refresh: ['{"user":"a","expired":1}', '{"user":"a","expire_at":"1"}'],
        subscribe: [
          '{"channel":"a","override":{"presence":true}}',
          '{"channel":"a","override":{"presence":{"value":1}}}',
        ],
        batch: [
          '{"commands":{}}',
          '{"commands":[1]}',
          '{"commands":[[]]}',
          '{"commands":[{"publish":1}]}',
          '{"commands":[{"publish":{"channel":1}}]}',
          '{"commands":[],"parallel":1}',
        ],
        channels: ['{"pattern":1}'],
      }
      for (const [name, texts] of Object.entries(wrong)) for (const text of texts) await refuse(name, text)
      t.same(taken, [])
    })

    t.test('null is absent, unknown fields are ignored', async t => {
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

    t.test('errors are HTTP 200, unless the transport mode is asked for', async t => {
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
      const rpc = await api.request('POST', '/api/rpc', '{"method":"x"}', { 'x-api-key': key, ...transport })
      t.equal(rpc.status, 404)
      t.equal(rpc.text, '{"code":104,"message":"not found"}')
      const published = await api.request('POST', '/api/publish', '{"channel":"nowhere:a","data":1}', {
        'x-api-key': key,
        ...transport,
      })
      t.equal(published.status, 404)
      t.equal((await ask({ channel: 'his:a' }, transport)).status, 200, 'results stay what they are')
      t.equal((await ask({ channel: 'plain' }, { 'x-centrifugo-error-mode': 'other' })).status, 200)
    })

    t.test('a body may have 16 MB', async t => {
      const data = 'x'.repeat(16 * 1024 * 1024)
      const answer = await api.request('POST', '/api/publish', JSON.stringify({ channel: 'plain', data }))
      t.equal(answer.status, 413)
      const large = await api.request(
        'POST',
        '/api/publish',
        JSON.stringify({ channel: 'plain', data: data.slice(100) }),
      )
      t.equal(large.text, '{"result":{}}')
    })

    t.test('methods of other channel types find none', async t => {
      for (const name of [
        'map_publish',
        'map_remove',
        'map_read_state',
        'map_read_stream',
        'map_stats',
        'map_clear',
        'shared_poll_publish',
      ]) {
        t.equal((await api.call(name, { channel: 'plain', key: 'a', data: 1 })).error.code, 107, name)
        t.equal((await api.call(name, { channel: 'nowhere:a' })).error.code, 102, name)
      }
    })

    t.test('the older form: commands one after another', async t => {
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
        '',
        ' \n',
        '{',
        '[]',
        '{}',
        '{"method":"nothing"}',
        'x{"method":"info"}',
        '{"method":"info"},{"method":"info"}',
        '{"method":"info"}}',
        '{"method":"info"}{"method":"nothing"}',
        '{"id":"1","method":"info"}',
        '{"method":"info","params":1}',
        '{"method":"info" x}',
        '{"method":"publish","params":{"channel":1}}',
        '{"method":"info","params":{}}"unclosed',
      ]
      for (const body of refused) t.equal((await ask(body)).status, 400, body)
      t.equal((await api.request('POST', '/api', '{"method":"info"}', {})).status, 401)
    })

    t.test('nothing of this was an error of the gateway', async t => t.same(api.failures(), []))
  })
}
