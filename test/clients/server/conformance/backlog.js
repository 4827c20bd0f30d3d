import { turn, until } from '../../../kit/wait.js'
import { connect, MAX_BUFFERED, open, Recorder, serve, streams } from './rig.js'

const PIECE = 'x'.repeat(200_000)
const NONE = { bytes: 0, largest: 0 }

/** The next backlog that matches: the server checks its sockets about once a second. */
const backlogOf = (server, matches) =>
  until(() => {
    const { bytes, largest } = server.backlog()
    return matches(bytes, largest) && { bytes, largest }
  })

/** Conformance of `backlog`. */
export function backlogConformance(t, driver) {
  t.test('backlog counts the unread bytes of all connections and the largest', async t => {
    const recorder = new Recorder({ maxBuffered: MAX_BUFFERED })
    const { server, port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
    const clients = []
    const connections = []
    for (let i = 0; i < 3; i++) {
      clients.push(await connect(t, port))
      connections.push(await recorder.opened())
      server.subscribe(connections[i], 'topic')
    }
    const [slow, slower] = connections
    t.same({ ...server.backlog() }, NONE)
    for (const { socket } of clients.slice(0, 2)) socket.pause()
    for (let i = 0; i < 50; i++) {
      server.publish('topic', PIECE, false)
      server.send(slower, PIECE, false)
      await turn()
    }
    const unread = () => server.buffered(slow) + server.buffered(slower)
    const { largest } = await backlogOf(server, bytes => bytes > 0 && bytes === unread())
    t.equal(largest, server.buffered(slower))
    t.ok(server.buffered(slower) > server.buffered(slow))
    clients[1].socket.terminate()
    await backlogOf(server, (bytes, largest) => bytes > 0 && bytes === largest)
    clients[0].socket.resume()
    await clients[0].take('message', 50)
    t.same(await backlogOf(server, bytes => bytes === 0), NONE)
  })

  t.test('backlog counts unread bytes of streams', async t => {
    const rig = await streams(t, driver, { maxBuffered: MAX_BUFFERED })
    const { client, stream } = await open(t, rig)
    const other = await open(t, rig)
    client.socket.pause()
    for (let i = 0; i < 50; i++) {
      rig.server.write(stream, PIECE)
      rig.server.write(other.stream, '.')
      await turn()
    }
    const unread = () => rig.server.unread(stream)
    const { bytes, largest } = await backlogOf(rig.server, bytes => bytes > 1_000_000 && bytes === unread())
    t.equal(bytes, largest)
    t.ok(bytes < 50 * PIECE.length)
    t.equal(rig.server.unread(other.stream), 0)
    client.socket.resume()
    t.same(await backlogOf(rig.server, bytes => bytes === 0 && unread() === 0), NONE)
  })
}
