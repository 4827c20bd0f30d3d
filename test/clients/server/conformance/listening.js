import { once } from 'node:events'
import net from 'node:net'
import { createServer } from '../../../../src/clients/server/index.js'
import { freePort } from '../../../kit/ports.js'
import { until } from '../../../kit/wait.js'
import { connect, pair, Recorder, serve } from './rig.js'

const connects = async port => {
  const socket = net.connect(port, '127.0.0.1')
  const connected = await once(socket, 'connect').catch(() => null)
  socket.destroy()
  return connected !== null
}

/** Conformance of a server as a whole: listening, shutdown and several routes. */
export function listeningConformance(t, driver) {
  t.test('`name` is the driver', async t => {
    t.equal((await createServer({ driver })).name, driver)
  })

  t.test('listen on a port in use rejects and names the address', async t => {
    const other = net.createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = /** @type {import('node:net').AddressInfo} */ (other.address())
    const server = await createServer({ driver })
    await t.rejects(server.listen('127.0.0.1', port), {
      message: new RegExp(`^cannot listen on 127.0.0.1:${port}: .+`),
    })
    other.close()
  })

  t.test('an empty host listens on every address', async t => {
    const server = await createServer({ driver })
    server.route('GET', '/', exchange => exchange.reply(200, null, exchange.remoteAddress()))
    const port = await freePort()
    await server.listen('', port)
    t.teardown(() => server.shutdown())
    t.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), '127.0.0.1', 'an IPv4 address')
  })

  t.test('stopListening refuses new connections and keeps open ones', async t => {
    const { server, port, recorder, client } = await pair(t, driver)
    server.stopListening()
    await until(async () => !(await connects(port)))
    client.socket.send('still here')
    t.equal(String((await recorder.next('message')).data), 'still here')
    server.stopListening()

    await server.listen('127.0.0.1', port)
    t.ok(await connects(port), 'it may listen again')
    client.socket.send('still there')
    t.equal(String((await recorder.next('message')).data), 'still there')
    server.stopListening()
    await until(async () => !(await connects(port)))
    server.shutdown()
  })

  t.test('shutdown cuts open connections and frees the port', async t => {
    const { server, port, recorder, client } = await pair(t, driver)
    const second = await connect(t, port)
    const idle = net.connect(port, '127.0.0.1')
    idle.on('error', () => {})
    await once(idle, 'connect')
    server.shutdown()
    for (const { code } of [await client.next('close'), await second.next('close')]) t.equal(code, 1006)
    t.same(
      (await recorder.take('close', 2)).map(event => event.code),
      [1006, 1006],
    )
    if (!idle.destroyed) await once(idle.resume(), 'close')
    const next = net.createServer().listen(port, '127.0.0.1')
    await once(next, 'listening')
    next.close()
  })

  t.test('routes share topics but have their own limits', async t => {
    const one = new Recorder()
    const two = new Recorder({ maxMessage: 10 })
    const { server, port } = await serve(t, driver, server => {
      server.websocket('/one', one.route)
      server.websocket('/two', two.route)
    })
    const first = await connect(t, port, '/one')
    const second = await connect(t, port, '/two')
    server.subscribe(await one.opened(), 'topic')
    server.subscribe(await two.opened(), 'topic')
    server.publish('topic', 'to both', false)
    t.equal(await first.next('message'), 'to both')
    t.equal(await second.next('message'), 'to both')
    first.socket.send('twelve bytes')
    t.equal(String((await one.next('message')).data), 'twelve bytes')
    second.socket.send('twelve bytes')
    t.equal((await second.next('close')).code, 1009)
    t.equal(one.count('close'), 0)
  })
}
