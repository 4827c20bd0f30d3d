// An overloaded worker refuses new connections, keeps existing ones, and accepts again once it has recovered. The
// overload is real: the event loop is blocked most of the time.

import { setTimeout as sleep } from 'node:timers/promises'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { anonymous, history, open } from '../../clients/session/support.js'
import { transports } from '../../guarantees/receivers.js'
import { skipDriver } from '../../kit/drivers.js'
import { healthy } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { PollClient } from '../../kit/poll-client.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { OVERLOADED, RECOVERED, refusedUpgrade } from './overload-rig.js'

const config = {
  workers: 1,
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { ...open, ...history } },
  prometheus: { enabled: true },
  ...transports,
}

/** Time for which the event loop is blocked in each round, and duration of a round, ms. */
const STILL = 420
const ROUND = 500

/** @param {any} t @param {number} pid @returns {() => void} ends it */
function standStill(t, pid) {
  let ended = false
  const signal = name => {
    try {
      process.kill(pid, name)
    } catch {
      // It has ended.
    }
  }
  const rounds = async () => {
    while (!ended) {
      signal('SIGSTOP')
      await sleep(STILL)
      signal('SIGCONT')
      await sleep(ROUND - STILL)
    }
  }
  rounds()
  const end = () => {
    ended = true
    signal('SIGCONT')
  }
  t.teardown(end)
  return end
}

/** @param {any} gateway @returns {Promise<number>} of the only worker */
async function overloadedMetric(gateway) {
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  return Number(/^halley_worker_overloaded\{worker="0"\} (\d)/m.exec(text)?.[1])
}

t.jobs = 2

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(`${driver}: a blocked worker refuses new clients`, { skip: skipDriver(driver) }, async t => {
    const gateway = await startGateway(
      t,
      { ...config, http_server: { driver } },
      { env: { HALLEY_OVERLOAD_MAX_TICK: '200ms' } },
    )
    const client = await anonymous(t, gateway)
    await client.subscribe('news')
    const poll = await PollClient.connected(gateway)
    const cursorOf = async query => {
      const response = await fetch(`${gateway.url}/connection/uni_poll?channel=news&timeout=0${query}`)
      return { status: response.status, ...(await response.json()) }
    }
    const { cursor } = await cursorOf('')
    // The worker appears in the metrics with its first sample.
    await until(async () => (await overloadedMetric(gateway)) === 0)
    const end = standStill(t, gateway.workerPids[0])
    const line = await gateway.line(({ msg }) => msg === OVERLOADED)
    t.match(line, { level: 40, worker: 0, reason: 'event_loop' })

    const refused = (path, { status, retryAfter }) => {
      t.equal(status, 503, path)
      t.ok(retryAfter >= 1 && retryAfter <= 10, path)
    }
    for (const path of ['websocket', 'uni_websocket'])
      refused(path, await refusedUpgrade(`ws://127.0.0.1:${gateway.port}/connection/${path}`))
    const connect = encodeURIComponent('{"id":1,"connect":{}}')
    /** @type {[path: string, init: any][]} */
    const requests = [
      ['http_stream', { method: 'POST', body: '{"id":1,"connect":{}}' }],
      [`sse?cf_connect=${connect}`, {}],
      ['poll', { method: 'POST', body: '' }],
      ['uni_sse?cf_connect=%7B%7D', {}],
      ['uni_http_stream', { method: 'POST', body: '{}' }],
      ['uni_poll?channel=news', {}],
    ]
    for (const [path, init] of requests) {
      const response = await fetch(`${gateway.url}/connection/${path}`, init)
      await response.text()
      refused(path, { status: response.status, retryAfter: Number(response.headers.get('retry-after')) })
    }

    const sdk = new Centrifuge(gateway.ws, {
      websocket: WebSocket,
      minReconnectDelay: 100,
      maxReconnectDelay: 1000,
    })
    t.teardown(() => sdk.disconnect())
    let attempts = 0
    sdk.on('error', () => attempts++)
    const connected = new Promise(resolve => sdk.once('connected', resolve))
    sdk.connect()
    await until(() => attempts >= 2)
    t.equal(sdk.state, 'connecting', 'the SDK backs off and retries')

    // Not a client; it responds with 503 while a sample is late.
    await healthy(gateway)
    await until(async () => (await overloadedMetric(gateway)) === 1)
    await gateway.api('publish', { channel: 'news', data: 1 })
    t.equal((await client.push('pub')).pub.data, 1, 'a connected client receives everything')
    t.match(await poll.call('subscribe', { channel: 'news' }), { subscribe: {} }, 'a session continues')
    t.match(await cursorOf(`&cursor=${cursor}`), { status: 200, publications: [{ data: 1 }] })

    end()
    await gateway.line(({ msg }) => msg === RECOVERED)
    await connected
    const late = await RawClient.connected(gateway.ws)
    late.socket.terminate()
    await until(async () => (await overloadedMetric(gateway)) === 0)
    t.equal(gateway.lines.filter(({ msg }) => msg === OVERLOADED).length, 1, 'one line')
    t.notOk(client.messages.some(({ disconnect }) => disconnect))
    t.equal(client.socket.readyState, WebSocket.OPEN)
  })
}
