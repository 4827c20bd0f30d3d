import { turn, until } from '../../../kit/wait.js'
import { connect, Recorder, serve } from './rig.js'
import { open, streams } from './streams-rig.js'

const MAX_BUFFERED = 100_000_000
const PIECE = 'x'.repeat(200_000)

/**
 * The server looks at its sockets about once a second.
 * @param {any} server
 * @param {(backlog: {bytes: number, largest: number}) => boolean} matches
 */
async function backlogOf(server, matches) {
  return until(() => {
    const { bytes, largest } = server.backlog()
    return matches({ bytes, largest }) && { bytes, largest }
  })
}

/** What the contract says of what clients have not taken. */
export function backlogConformance(t, driver) {
  t.test('connections: the bytes that are unread, of all of them and of the one with the most', async t => {
    const recorder = new Recorder({ maxBuffered: MAX_BUFFERED })
    const { server, port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
    const clients = []
    const connections = []
    for (let i = 0; i < 3; i++) {
      clients.push(await connect(t, port))
      connections.push(await recorder.opened())
    }
    const [slow, slower] = connections
    t.same({ ...server.backlog() }, { bytes: 0, largest: 0 })
    for (const connection of connections) server.subscribe(connection, 'topic')
    clients[0].socket.pause()
    clients[1].socket.pause()
    for (let i = 0; i < 50; i++) {
      server.publish('topic', PIECE, false)
      server.send(slower, PIECE, false)
      await turn()
    }
    const unread = () => server.buffered(slow) + server.buffered(slower)
    await backlogOf(server, ({ bytes }) => bytes > 0 && bytes === unread())
    t.equal(server.backlog().largest, server.buffered(slower))
    t.ok(server.buffered(slower) > server.buffered(slow))
    clients[1].socket.terminate()
    await backlogOf(server, ({ bytes, largest }) => bytes > 0 && bytes === largest)
    clients[0].socket.resume()
    await clients[0].take('message', 50)
    t.same(await backlogOf(server, ({ bytes }) => bytes === 0), { bytes: 0, largest: 0 })
  })

  t.test('streams: the same', async t => {
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
    const { bytes, largest } = await backlogOf(
      rig.server,
      ({ bytes }) => bytes > 1_000_000 && bytes === unread(),
    )
    t.equal(bytes, largest)
    t.ok(bytes < 50 * PIECE.length)
    t.equal(rig.server.unread(other.stream), 0)
    client.socket.resume()
    t.same(await backlogOf(rig.server, ({ bytes }) => bytes === 0 && unread() === 0), {
      bytes: 0,
      largest: 0,
    })
  })
}
