import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { freePort } from '../../kit/ports.js'

for (const driver of drivers) {
  t.test(`internal endpoints are only on the internal port (${driver})`, async t => {
    const internal = await freePort()
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { internal_port: internal, driver },
      client: { insecure: true },
      uni_sse: { enabled: true },
      prometheus: { enabled: true },
      admin: { password: 'admin key' },
    })
    const inside = `http://127.0.0.1:${internal}`
    const status = async (url, init = {}) => {
      const answer = await fetch(url, init)
      await answer.body?.cancel()
      return answer.status
    }
    const info = { method: 'POST', body: '{}', headers: { 'X-API-Key': 'key' } }
    for (const [path, init] of /** @type {[string, RequestInit?][]} */ ([
      ['/api/info', info],
      ['/health'],
      ['/metrics'],
      ['/admin'],
    ])) {
      t.equal(await status(inside + path, init), 200, `${path} is on the internal port`)
      t.equal(await status(gateway.url + path, init), 404, `${path} is not on the clients' port`)
    }
    const sse = '/connection/uni_sse?cf_connect=%7B%7D'
    t.equal(await status(gateway.url + sse), 200)
    t.equal(await status(inside + sse), 404, 'client endpoints are not on the internal port')
    await t.rejects(
      startGateway(t, { workers: 1, http_server: { internal_port: gateway.port, driver } }),
      {
        message: new RegExp(
          `cannot listen on 127.0.0.1:${gateway.port}: EADDRINUSE: .*; set another port with http_server.internal_port`,
        ),
      },
      'an internal port in use is one line',
    )
  })
}
