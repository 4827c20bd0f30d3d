import { workerOf } from '../../../../src/clients/session/ids.js'
import { slotOf } from '../../../../src/processes/primary/forked.js'
import { startGateway } from '../../../kit/gateway.js'
import { PollClient } from '../../../kit/poll-client.js'
import { RawClient } from '../../../kit/raw-client.js'
import { post } from '../../../kit/stream-client.js'
import { until } from '../../../kit/wait.js'
import { history, open } from '../../session/support.js'

const config = (/** @type {string} */ driver, /** @type {any} */ more = {}) => ({
  workers: more.workers ?? 2,
  poll: { enabled: true, ...more.poll },
  http_server: { driver },
  client: { allow_anonymous_connect_without_token: true, ...more.client },
  channel: {
    without_namespace: { ...open, ...history, ...more.channel },
    namespaces: [{ name: 'kept', ...open, ...history, force_recovery: true }],
  },
  rpc: { ping: { enabled: true } },
})

/** @param {any} t @param {'uws' | 'node'} driver */
export function pollSuite(t, driver) {
  t.test('POSTs', async t => {
    const gateway = await startGateway(t, config(driver, { client: { queue_max_size: 4_000_000 } }))
    const endpoint = `${gateway.url}/connection/poll`
    const publish = (/** @type {string} */ channel, /** @type {any} */ data) =>
      gateway.api('publish', { channel, data })

    t.test('a POST without a session opens one, with or without its first commands', async t => {
      const empty = await post(endpoint, '', {})
      t.equal(empty.status, 200)
      t.match(empty.headers, { 'halley-seq': '0', 'halley-session': /^[\w-]{36}\./ })
      t.match(empty.headers['cache-control'], 'no-store')
      t.equal(empty.text, '')
      const connected = await post(endpoint, '{"id":1,"connect":{}}\n{"id":2,"rpc":{"method":"ping"}}', {})
      t.equal(connected.status, 200)
      const messages = connected.text.split('\n')
      t.equal(messages.pop(), '', 'every message ends with a line feed')
      const [reply] = messages.map(text => JSON.parse(text))
      t.match(reply, {
        id: 1,
        connect: { ping: 600, pong: true, session: /^[\w-]{36}$/, node: /^[\w-]{36}$/ },
      })
      t.equal(connected.headers['content-type'], 'text/plain; charset=utf-8')
      t.not(connected.headers['halley-seq'], '0')
    })

    t.test('a poll carries all commands, replies and pushes of a WebSocket', async t => {
      const client = await PollClient.connected(gateway)
      t.match(await client.call('subscribe', { channel: 'all' }), { subscribe: { recoverable: undefined } })
      t.match(await client.call('publish', { channel: 'all', data: { text: 'é🎈' } }), { publish: {} })
      t.same((await client.push('pub')).pub.data, { text: 'é🎈' })
      t.match(await client.call('presence', { channel: 'all' }), { presence: { presence: {} } })
      t.match(await client.call('history', { channel: 'all', limit: 1 }), { history: { offset: 1 } })
      t.match(await client.call('rpc', { method: 'ping' }), { rpc: {} })
      t.match(await client.call('unsubscribe', { channel: 'all' }), { unsubscribe: {} })
    })

    t.test('any worker accepts any POST', async t => {
      const client = await PollClient.connected(gateway)
      await client.call('subscribe', { channel: 'any' })
      // Each on its own connection, to any worker.
      for (let i = 1; i <= 30; i++) {
        await client.send({ id: 1000 + i, publish: { channel: 'any', data: i } })
        t.equal((await client.push('pub')).pub.data, i)
      }
      const waiting = Array.from({ length: 12 }, () => PollClient.connected(gateway))
      for (const other of await Promise.all(waiting)) await other.call('subscribe', { channel: 'any' })
    })

    t.test('a waiting poll is answered as soon as there is a message', async t => {
      const client = await PollClient.connected(gateway)
      await client.call('subscribe', { channel: 'wait' })
      const polled = client.poll(30)
      await publish('wait', 1)
      await publish('wait', 2)
      const first = await polled
      t.equal(first[0].push.pub.data, 1)
      if (first.length === 1) await client.poll()
      t.equal((await client.push('pub')).pub.data, 1)
      t.equal((await client.push('pub')).pub.data, 2)
    })

    t.test('messages of one turn are sent in one response', async t => {
      const client = await PollClient.connected(gateway)
      const commands = Array.from({ length: 40 }, (_, i) => ({ id: 100 + i, rpc: { method: 'ping' } }))
      await client.send(...commands)
      t.equal((await client.poll()).length, 40)
    })

    t.test('a poll gets an empty response after its timeout, with timeout 0 immediately', async t => {
      const client = await PollClient.connected(gateway)
      t.same(await client.poll(0), [])
      t.equal(client.close, null)
      const start = performance.now()
      t.same(await client.poll(0.3), [])
      t.ok(performance.now() - start > 250)
    })

    t.test('a lost response is sent again until it is acknowledged', async t => {
      const client = await PollClient.connected(gateway)
      await client.call('subscribe', { channel: 'lost' })
      await publish('lost', 1)
      for (let i = 0; i < 5; i++) await client.lose({ answered: true })
      await publish('lost', 2)
      await client.lose({ answered: true })
      // The second publication may reach the session's worker late.
      const got = []
      while (got.length < 2) got.push(...(await client.poll()))
      t.match(got, [{ push: { pub: { data: 1 } } }, { push: { pub: { data: 2 } } }])
      t.same(await client.poll(0), [], 'no message twice')
    })

    t.test('messages are kept while no poll waits, even after a cut poll', async t => {
      const client = await PollClient.connected(gateway)
      await client.call('subscribe', { channel: 'cut' })
      for (let i = 1; i <= 6; i++) {
        await client.lose({ answered: false, timeout: 20 })
        await publish('cut', i)
      }
      const got = []
      while (got.length < 6) for (const message of await client.poll()) got.push(message.push.pub.data)
      t.same(got, [1, 2, 3, 4, 5, 6])
    })

    t.test('a repeated POST runs its commands once', async t => {
      const client = await PollClient.connected(gateway)
      const number = client.sent + 1
      const body = '{"id":50,"publish":{"channel":"once","data":1}}'
      for (let i = 0; i < 4; i++) t.equal((await client.post(`send=${number}`, body)).status, 204)
      t.equal((await client.post(`send=${number - 1}`, body)).status, 204)
      t.match(await client.next(({ id }) => id === 50), { publish: {} })
      t.same(await client.poll(0), [])
      const { result } = await gateway.api('history', { channel: 'once' })
      t.equal(result.offset, 1)
      const gap = await client.post(`send=${number + 2}`, body)
      t.same([gap.status, gap.text], [409, 'send must be the previous number + 1'])
      t.equal((await client.post(`send=${number + 1}`, body)).status, 204)
    })

    t.test('a poll may include commands, numbered or not', async t => {
      const client = await PollClient.connected(gateway)
      const ping = (/** @type {number} */ id) => JSON.stringify({ id, rpc: { method: 'ping' } })
      const plain = await client.post(`ack=${client.seq}`, ping(70))
      t.match(JSON.parse(plain.text), { id: 70 })
      const seq = plain.headers['halley-seq']
      const numbered = await client.post(`ack=${seq}&send=${client.sent + 1}`, ping(71))
      t.match(JSON.parse(numbered.text), { id: 71 })
      const ack = numbered.headers['halley-seq']
      const again = await client.post(`ack=${ack}&send=${client.sent + 1}&timeout=0`, ping(71))
      t.equal(again.text, '', 'the repeated POST is only a poll')
    })

    t.test('a second poll ends the first one', async t => {
      const client = await PollClient.connected(gateway)
      await client.call('subscribe', { channel: 'over' })
      const { seq } = client
      for (let i = 1; i <= 8; i++) {
        const first = client.post(`ack=${client.seq}&timeout=20`)
        // They may arrive in either order.
        await client.post(`ack=${client.seq}&timeout=0.05`)
        const second = client.post(`ack=${client.seq}&timeout=20`)
        const older = await Promise.race([first, second])
        t.same([older.status, older.text, older.headers['halley-seq']], [200, '', `${client.seq}`])
        await publish('over', i)
        const answers = await Promise.all([first, second])
        t.equal(answers.filter(({ text }) => text !== '').length, 1)
        client.seq++
      }
      t.equal(client.seq, seq + 8)
    })

    t.test('POSTs to /emulation reach the session', async t => {
      const client = await PollClient.connected(gateway)
      const { session, node } = client.connect
      for (let id = 60; id < 66; id++) {
        const data = JSON.stringify({ id, rpc: { method: 'ping' } })
        t.equal((await post(`${gateway.url}/emulation`, JSON.stringify({ session, node, data }))).status, 204)
        t.match(await client.next(message => message.id === id), { rpc: {} })
      }
    })

    t.test('an invalid request gets an error line, and the session continues', async t => {
      const client = await PollClient.connected(gateway)
      const { session } = client
      const other = session.replace(/^......../, '00000000')
      const otherNode = `${session.slice(0, 36)}.00000000-0000-4000-8000-000000000000`
      const own = `session=${session}`
      const badAck = 'ack is not a whole number'
      const badSend = 'send is not a whole number from 1 on'
      /** @type {[status: number, line: string, ...queries: string[]][]} */
      const table = [
        [400, 'session is missing', 'ack=0', 'send=1', 'close=1'],
        [400, 'session is empty', 'session=&ack=0'],
        [400, 'ack, send or close is required', own],
        [400, badAck, ...['', '-1', '1.5', '1e3', '99999999999999999'].map(ack => `${own}&ack=${ack}`)],
        [400, 'ack is higher than the last message sent', `${own}&ack=999`],
        [409, 'ack is lower than an earlier ack', `${own}&ack=0`],
        [400, badSend, `${own}&send=0`, `${own}&send=x`],
        [400, 'the body contains no commands', `${own}&send=2`],
        [409, 'send must be the previous number + 1', `${own}&send=9`],
        [400, 'timeout is not a number of seconds', `${own}&ack=1&timeout=-1`, `${own}&ack=1&timeout=NaN`],
        [400, 'close must be 0 or 1', `${own}&ack=1&close=yes`],
        [404, 'unknown session', ...['ack=0', 'send=1', 'close=1'].map(query => `session=${other}&${query}`)],
        [404, 'unknown session', `session=${otherNode}&ack=0`, 'session=x&ack=0', 'session=%00%ff%&ack=0'],
        [404, 'unknown session', `session=${'x'.repeat(3000)}&ack=0`, `${own.slice(0, 40)}ffff&ack=0`],
      ]
      t.equal((await client.post(`ack=${client.seq}&timeout=0`)).status, 200)
      for (const [status, line, ...queries] of table) {
        for (const query of queries) {
          const answer = await post(`${endpoint}?${query}`, '', {})
          t.same([answer.status, answer.text], [status, line], query)
        }
      }
      const long = await client.post(`send=${client.sent + 1}`, 'x'.repeat(65537))
      t.same([long.status, long.text], [413, 'the body is too long'])
      t.equal((await post(endpoint, 'x'.repeat(65537), {})).status, 413)
      for (const method of ['GET', 'PUT', 'DELETE']) {
        t.equal((await post(`${endpoint}?session=${session}&ack=0`, '', {}, method)).status, 405)
      }
      t.match(await client.call('rpc', { method: 'ping' }), { rpc: {} }, 'the session continues')
    })

    t.test('an invalid body ends the session with the code of WebSocket, which the poll gets', async t => {
      for (const body of ['x', '[]', '{"id":2,"connect":{}}', '\n']) {
        const client = await PollClient.connected(gateway)
        t.equal((await client.post(`send=${client.sent + 1}`, body)).status, 204)
        t.same(await client.poll(), [{ push: { disconnect: { code: 3501, reason: 'bad request' } } }])
        t.equal(client.close, '3501 bad request')
      }
      const first = await post(endpoint, '{"id":1,"subscribe":{"channel":"x"}}', {})
      t.equal(first.headers['halley-close'], '3501 bad request')
    })

    t.test('an ended session repeats its last messages until acknowledged; commands get 404', async t => {
      const client = await PollClient.connected(gateway)
      await client.call('subscribe', { channel: 'end' })
      await publish('end', 'the last')
      t.match((await client.post(`ack=${client.seq}&timeout=20`)).text, 'the last', 'it has arrived')
      const reason = 'a \r\n reason: 100% über 🎈'
      const { client: id } = client.connect
      await gateway.api('disconnect', { user: '', client: id, disconnect: { code: 4501, reason } })
      const { seq } = client
      for (let i = 0; i < 3; i++) {
        client.seq = seq
        await client.poll()
        t.match(client.messages.splice(0), [
          { push: { pub: { data: 'the last' } } },
          { push: { disconnect: { code: 4501, reason } } },
        ])
        t.equal(decodeURIComponent(client.close ?? ''), `4501 ${reason}`)
      }
      const late = await client.post(`send=${client.sent + 1}`, '{"id":9,"rpc":{"method":"ping"}}')
      t.same([late.status, late.text], [404, 'the session has ended'])
    })

    t.test('a client that closes leaves immediately, after its last commands', async t => {
      const client = await PollClient.connected(gateway)
      await client.call('subscribe', { channel: 'leaving' })
      const present = async () => (await gateway.api('presence_stats', { channel: 'leaving' })).result
      t.equal((await present()).num_clients, 1)
      const last = '{"id":9,"publish":{"channel":"leaving","data":"bye"}}'
      const polled = client.post(`ack=${client.seq}&timeout=20`)
      t.equal((await client.post(`send=${client.sent + 1}&close=1`, last)).status, 204)
      t.ok([200, 404].includes((await polled).status), 'the poll arrived before or after the close')
      t.ok(await until(async () => (await present()).num_clients === 0))
      t.ok(
        await until(async () => (await gateway.api('history', { channel: 'leaving' })).result.offset === 1),
      )
      t.equal((await client.post('ack=0')).status, 404)
      t.equal((await client.post('close=1')).status, 404)
    })

    t.test('pages of allowed origins may read the response headers', async t => {
      const headers = { Origin: 'https://app.example.com' }
      const answer = await post(endpoint, '', headers)
      t.equal(answer.headers['access-control-allow-origin'], 'https://app.example.com')
      t.equal(answer.headers['access-control-expose-headers'], 'Halley-Session, Halley-Seq, Halley-Close')
      const lost = await post(`${endpoint}?session=x&ack=0`, '', headers)
      t.equal(lost.headers['access-control-allow-origin'], 'https://app.example.com')
      const requested = { ...headers, 'Access-Control-Request-Headers': 'content-type' }
      const preflight = await post(endpoint, '', requested, 'OPTIONS')
      t.equal(preflight.status, 204)
      t.match(preflight.headers, {
        'access-control-allow-methods': 'POST, OPTIONS',
        'access-control-allow-headers': 'content-type',
      })
    })

    t.test('a client that polls too rarely is closed with 3008 and recovers', async t => {
      const client = await PollClient.connected(gateway)
      const { subscribe } = await client.call('subscribe', { channel: 'kept:much' })
      // More than fits into a queue.
      const COUNT = 90
      const data = 'x'.repeat(50_000)
      await gateway.api('batch', {
        commands: Array.from({ length: COUNT }, (_, i) => ({
          publish: { channel: 'kept:much', data: `${i + 1} ${data}` },
        })),
      })
      await until(
        async () => (await gateway.api('presence_stats', { channel: 'kept:much' })).result.num_clients === 0,
      )
      t.same(await client.poll(), [{ push: { disconnect: { code: 3008, reason: 'slow' } } }])
      t.equal(client.close, '3008 slow')

      // A reply has no room for all missed publications.
      const recover = async offset => {
        const back = await PollClient.connected(gateway)
        const position = { recover: true, offset, epoch: subscribe.epoch }
        return (await back.call('subscribe', { channel: 'kept:much', ...position })).subscribe
      }
      const refused = await recover(0)
      t.match(refused, { was_recovering: true, offset: COUNT })
      t.notOk(refused.recovered)
      const back = await recover(40)
      t.equal(back.recovered, true)
      t.same(
        back.publications.map(({ data }) => Number(data.split(' ')[0])),
        Array.from({ length: 50 }, (_, i) => i + 41),
      )
    })

    t.test('a long response is split; the next poll gets the rest', async t => {
      const client = await PollClient.connected(gateway)
      await client.call('subscribe', { channel: 'long' })
      const data = 'y'.repeat(50_000)
      for (let i = 1; i <= 60; i++) await publish('long', `${i} ${data}`)
      const counts = []
      const numbers = []
      while (numbers.length < 60) {
        const messages = await client.poll()
        counts.push(messages.length)
        numbers.push(...messages.map(({ push }) => Number(push.pub.data.split(' ')[0])))
      }
      t.same(
        numbers,
        Array.from({ length: 60 }, (_, i) => i + 1),
      )
      // The last publications may reach the session late.
      t.same(counts.slice(0, 2), [21, 21], 'the last message exceeds 1 MiB')
    })

    t.test('sessions of a killed worker are unknown, other sessions continue', async t => {
      const clients = await Promise.all(Array.from({ length: 9 }, () => PollClient.connected(gateway)))
      const owner = (/** @type {PollClient} */ { session }) => slotOf(workerOf(session.slice(0, 36)))
      const victim = owner(clients[0])
      const { pid } = gateway.lines.findLast(
        ({ msg, worker }) => msg === 'worker is listening' && worker === victim,
      )
      const polls = clients.map(client =>
        client.poll(30).then(
          () => 'answered',
          error => error.message,
        ),
      )
      await clients[0].post(`ack=${clients[0].seq}&timeout=0.2`)
      const again = gateway.lines.length
      process.kill(pid, 'SIGKILL')
      await gateway.line(line => line.msg === 'worker is listening' && gateway.lines.indexOf(line) >= again)
      for (const [i, client] of clients.entries()) {
        if (owner(client) === victim) {
          const { status, text } = await client.post(`ack=${client.seq}&timeout=0`)
          t.same([status, text], [404, 'unknown session'])
        } else {
          t.match(await client.call('rpc', { method: 'ping' }), { rpc: {} })
          const first = await polls[i]
          t.ok(first === 'answered' || first.match(/hang up|reset/), first)
        }
      }
    })
  })

  t.test('sessions without polls', async t => {
    const gateway = await startGateway(
      t,
      config(driver, {
        workers: 2,
        poll: { session_timeout: '4s' },
        client: { pong_timeout: '400ms' },
        channel: { join_leave: true, force_push_join_leave: true },
      }),
    )
    t.jobs = 2

    t.test('a session without polls ends and leaves presence', async t => {
      const watcher = await RawClient.connected(gateway.ws)
      t.teardown(() => watcher.socket.terminate())
      await watcher.subscribe('room')
      const unconnected = await PollClient.open(gateway)
      const client = await PollClient.connected(gateway)
      await client.call('subscribe', { channel: 'room' })
      const isClient = (/** @type {any} */ { info }) => info.client === client.connect.client
      await watcher.next(({ push }) => push?.join && isClient(push.join))
      t.same(
        (await client.poll(5.5)).filter(({ push }) => !push?.join),
        [],
        'a waiting poll keeps it',
      )
      t.ok(isClient((await watcher.push('leave')).leave))
      t.equal((await client.post(`ack=${client.seq}`)).status, 404)
      t.equal((await unconnected.post('ack=0')).status, 404, 'also before connect')
    })

    t.test('a session ends soon after its waiting client has disconnected', async t => {
      const watcher = await RawClient.connected(gateway.ws)
      t.teardown(() => watcher.socket.terminate())
      await watcher.subscribe('leaving')
      const clients = await Promise.all(Array.from({ length: 9 }, () => PollClient.connected(gateway)))
      await Promise.all(clients.map(client => client.call('subscribe', { channel: 'leaving' })))
      for (const client of clients) {
        while (client.messages.splice(0).length > 0) await client.poll(0)
      }
      await Promise.all(clients.map(client => client.lose({ answered: false, timeout: 20 })))
      for (const _ of clients) await watcher.push('leave')
      t.pass('whichever worker had the poll')
    })
  })

  t.test('above connection_limit a session is refused; shutdown ends sessions with 3001', async t => {
    const gateway = await startGateway(t, config(driver, { workers: 2, client: { connection_limit: 6 } }))
    const clients = []
    for (let i = 0; i < 6; i++) clients.push(await PollClient.connected(gateway))
    const refused = await until(async () => {
      const answer = await post(`${gateway.url}/connection/poll`, '', {})
      return answer.status !== 200 && answer
    })
    t.same([refused.status, refused.text], [503, 'too many connections'])
    let waiting = true
    const polls = Promise.all(clients.map(client => client.poll(30))).then(() => {
      waiting = false
    })
    // A late poll replaces it, and would wait for 30 s.
    await until(async () => {
      for (const client of clients) t.equal((await client.post(`ack=${client.seq}&timeout=0.05`)).status, 200)
      return !waiting
    })
    await polls
    // When one of two polls is answered, the other one waits.
    const last = clients.map(client => [client.poll(30), client.poll(30)])
    for (const both of last) await Promise.race(both)
    gateway.process.kill('SIGTERM')
    await Promise.all(last.flat())
    for (const client of clients) t.equal(client.close, '3001 shutdown')
  })
}
