// client.user_id_http_header: who the proxy in front says that a client is, on every way in.

import t from 'tap'
import { transports } from '../../guarantees/receivers.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { post, StreamClient } from '../../kit/stream-client.js'

const headers = { 'X-User-Id': 'anna' }

t.test('the trusted header names the user, whichever way they come', async t => {
  const gateway = await startGateway(t, {
    workers: 1,
    ...transports,
    client: {
      user_id_http_header: 'X-User-Id',
      subscribe_to_user_personal_channel: { enabled: true },
    },
  })
  const { url } = gateway
  const own = { '#anna': {} }
  const websocket = await RawClient.connected(gateway.ws, {}, { headers })
  t.same(websocket.connect.subs, own, 'websocket')
  await websocket.close()
  for (const transport of /** @type {const} */ (['http_stream', 'sse'])) {
    const client = await StreamClient.connected(url, transport, {}, { headers })
    t.same(client.connect.subs, own, transport)
    await client.close()
  }
  const uniSse = await StreamClient.open(url, '/connection/uni_sse', { headers })
  t.same((await uniSse.next()).connect.subs, own, 'uni_sse')
  await uniSse.close()
  const uniStream = await StreamClient.open(url, '/connection/uni_http_stream', {
    method: 'POST',
    body: '{}',
    headers,
  })
  t.same((await uniStream.next()).connect.subs, own, 'uni_http_stream')
  await uniStream.close()
  const poll = await post(`${url}/connection/poll`, '{"id":1,"connect":{}}', headers)
  t.same(JSON.parse(poll.text).connect.subs, own, 'poll')
  const uniPoll = await post(`${url}/connection/uni_poll?channel=%23anna&timeout=0`, '', headers, 'GET')
  t.equal(uniPoll.status, 200, 'uni_poll')
  const nobody = await post(`${url}/connection/uni_poll?channel=%23anna&timeout=0`, '', {}, 'GET')
  t.equal(nobody.status, 401, 'without the header nobody is known')
})

t.test('its value is UTF-8', async t => {
  for (const driver of drivers) {
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { driver },
      ...transports,
      client: { user_id_http_header: 'X-User-Id', subscribe_to_user_personal_channel: { enabled: true } },
    })
    const bytes = { 'X-User-Id': Buffer.from('a€漢z').toString('latin1') }
    const client = await RawClient.connected(gateway.ws, {}, { headers: bytes })
    t.same(client.connect.subs, { '#a€漢z': {} }, driver)
    await client.close()
  }
})
