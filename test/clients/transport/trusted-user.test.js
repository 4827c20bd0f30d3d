// client.user_id_http_header: a trusted proxy names the user, over every transport.

import t from 'tap'
import { transports } from '../../guarantees/receivers.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { post, StreamClient } from '../../kit/stream-client.js'

const headers = { 'X-User-Id': 'anna' }
const own = { '#anna': {} }
const client = {
  user_id_http_header: 'X-User-Id',
  subscribe_to_user_personal_channel: { enabled: true },
}

t.test('the trusted header names the user', async t => {
  const gateway = await startGateway(t, { workers: 1, ...transports, client })
  const { url } = gateway
  const uni = { method: 'POST', body: '{}', headers }
  const opened = {
    websocket: RawClient.connected(gateway.ws, {}, { headers }),
    http_stream: StreamClient.connected(url, 'http_stream', {}, { headers }),
    sse: StreamClient.connected(url, 'sse', {}, { headers }),
    uni_sse: StreamClient.open(url, '/connection/uni_sse', { headers }),
    uni_http_stream: StreamClient.open(url, '/connection/uni_http_stream', uni),
  }
  for (const [transport, opening] of Object.entries(opened)) {
    const client = await opening
    t.same((client.connect ?? (await client.next()).connect).subs, own, transport)
    await client.close()
  }
  const poll = await post(`${url}/connection/poll`, '{"id":1,"connect":{}}', headers)
  t.same(JSON.parse(poll.text).connect.subs, own, 'poll')
  const uniPoll = `${url}/connection/uni_poll?channel=%23anna&timeout=0`
  t.equal((await post(uniPoll, '', headers, 'GET')).status, 200, 'uni_poll')
  t.equal((await post(uniPoll, '', {}, 'GET')).status, 401, 'uni_poll without the header')
})

for (const driver of drivers) {
  t.test(`the header is read as UTF-8 on ${driver}`, async t => {
    const gateway = await startGateway(t, { workers: 1, http_server: { driver }, client })
    const bytes = { 'X-User-Id': Buffer.from('a€漢z').toString('latin1') }
    const connection = await RawClient.connected(gateway.ws, {}, { headers: bytes })
    t.same(connection.connect.subs, { '#a€漢z': {} })
    await connection.close()
  })
}
