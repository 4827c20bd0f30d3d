// POSTs to sessions of other workers (client protocol).

import http from 'node:http'
import t from 'tap'
import { workerOf } from '../../../src/clients/session/ids.js'
import { slotOf } from '../../../src/processes/primary/forked.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'

import { StreamClient } from '../../kit/stream-client.js'

/**
 * Posts on the agent's connection.
 * @param {http.Agent} agent @param {string} url @param {object} body @returns {Promise<number>} status
 */
function post(agent, url, body) {
  return new Promise((resolve, reject) => {
    const headers = { 'X-API-Key': 'key' }
    const request = http.request(url, { method: 'POST', agent, headers }, response => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
    })
    request.on('error', reject)
    request.end(JSON.stringify(body))
  })
}

for (const driver of drivers) {
  t.test(`${driver}: a POST is answered after the worker of its session has received it`, async t => {
    const gateway = await startGateway(t, {
      http_server: { driver },
      http_stream: { enabled: true },
      client: { insecure: true },
      worker: { liveness_timeout: 0 },
    })
    const client = await StreamClient.connected(gateway.url, 'http_stream')
    const { session, node } = client.connect
    const owner = slotOf(workerOf(session))
    const { pid } = await gateway.line(({ msg, worker }) => msg === 'worker is listening' && worker === owner)
    process.kill(pid, 'SIGSTOP')
    t.teardown(() => process.kill(pid, 'SIGCONT'))
    const agents = Array.from({ length: 24 }, () => new http.Agent({ keepAlive: true, maxSockets: 1 }))
    t.teardown(() => {
      for (const agent of agents) agent.destroy()
    })
    // Connections with a response by now belong to the other worker.
    /** @type {http.Agent[]} */
    const free = []
    await new Promise(resolve => {
      for (const agent of agents) {
        post(agent, `${gateway.url}/emulation`, {}).then(
          // A post without a node.
          status => {
            if (status === 404 && free.push(agent) === 2) resolve(undefined)
          },
          () => {},
        )
      }
    })
    let answered = false
    const data = '{"id":2,"rpc":{"method":"none"}}'
    const posted = post(free[0], `${gateway.url}/emulation`, { session, node, data }).then(status => {
      answered = true
      return status
    })
    t.equal(await post(free[1], `${gateway.url}/api/publish`, { channel: 'x', data: 1 }), 200)
    t.notOk(answered, 'a client that posts too fast has to wait')
    process.kill(pid, 'SIGCONT')
    t.equal(await posted, 204)
    t.match(await client.next(), { id: 2, error: { code: 108 } })
    await client.close()
  })
}
