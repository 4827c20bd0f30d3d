// Rows of the conformance suite that are only of event proxies: what is on the wire, and their figures.

import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { EVENTS, INTERNAL } from './rig.js'

/**
 * @param {any} t
 * @param {{gateway: import('../../kit/gateway.js').TestGateway, backend: import('./rig.js').ConformanceBackend, row: any,
 *   open: any, enter: any}} parts of the suite
 */
export async function wireRows(t, { gateway, backend, row, open, enter }) {
  await row(t, 'headers keep their bytes', async (/** @type {any} */ t) => {
    // As node:http has it: a character for each byte. uWebSockets.js drops those beyond ASCII at the ends of a value.
    const value = Buffer.from('an ä and a € too').toString('latin1')
    const client = await RawClient.open(gateway.ws, { headers: { 'x-name': value } })
    t.teardown(() => client.socket.terminate())
    const { connect } = await client.call('connect')
    const { headers } = await backend.call(({ fields }) => fields.client === connect.client)
    t.equal(headers['x-name'], value)
  })

  await row(t, 'statuses and bodies', async (/** @type {any} */ t) => {
    const client = await enter(t)
    const rpc = (/** @type {any} */ answer) => client.call('rpc', { method: 'm', data: { answer } })
    for (const answer of [
      { status: 201, body: '{"result":{}}' },
      { status: 204, body: '' },
      { status: 500, body: '' },
      { status: 200, body: '' },
      { status: 200, body: '[]' },
      { status: 200, body: '{"result":{}} x' },
    ])
      t.strictSame((await rpc(answer)).error, INTERNAL, JSON.stringify(answer))
    t.match((await rpc({ status: 404, body: '' })).error, { code: 1404, message: 'unknown' })
    client.frames.length = 0
    await rpc({ status: 200, body: '{"result":{"data":{ "x" : 1.50 }}}' })
    t.ok(client.frames.join('').includes('"data":{ "x" : 1.50 }'), 'the text is kept')
    const override = { status: 200, body: '{"result":{"override":{"presence":true}}}' }
    t.strictSame(
      (await client.call('subscribe', { channel: 'o', data: { answer: override } })).error,
      INTERNAL,
    )
    const user = { status: 200, body: '{"result":{"user":5}}' }
    t.strictSame((await open(t, user)).reply.error, INTERNAL)
    client.send({ id: 99, rpc: { method: 'm', data: { answer: { status: 403, body: '' } } } })
    t.strictSame(await client.closed, { code: 4403, reason: 'forbidden' })
  })
}

/**
 * At the end, when every event has been asked.
 * @param {any} t
 * @param {{gateway: import('../../kit/gateway.js').TestGateway, backend: import('./rig.js').ConformanceBackend, row: any}} parts
 */
export async function figureRows(t, { gateway, backend, row }) {
  await row(t, 'figures of proxies', async (/** @type {any} */ t) => {
    const names = EVENTS.map(type => `protocol="${backend.protocol}",type="${type}",name="default"`)
    await until(async () => {
      // Figures come once a second.
      const text = await (await fetch(`${gateway.url}/metrics`)).text()
      const last = 'halley_hook_failures_total{[^}]*event="rpc",name="short.rpc",reason="timeout"} 1'
      if (!new RegExp(last.replace(/[{}]/g, '\\$&')).test(text)) return false
      const ended = (/** @type {string} */ name) =>
        new RegExp(`centrifugo_proxy_duration_seconds_histogram_count\\{${name}\\} [1-9]`).test(text)
      // A snapshot may have been made during a call.
      const idle = (/** @type {string} */ name) =>
        text.includes(`centrifugo_proxy_inflight_requests{${name}} 0`)
      if (!names.every(name => ended(name) && idle(name))) return false
      t.match(text, /centrifugo_proxy_errors\{[^}]*type="rpc",name="short.rpc"\} 1/)
      return true
    })
  })
}
