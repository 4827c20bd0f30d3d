// HTTP/1.1 pipelining: a client may send requests before earlier responses arrive.

import net from 'node:net'
import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'

const COUNT = 3

function publish(number) {
  const body = JSON.stringify({ channel: 'pipelined', data: number })
  return `POST /api/publish HTTP/1.1\r\nHost: x\r\nX-API-Key: key\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

for (const driver of drivers) {
  t.test(`${driver}: pipelined requests run in order, or only the first one runs`, async t => {
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { driver },
      channel: { without_namespace: { history_size: 10, history_ttl: '1m' } },
    })
    const socket = net.connect(gateway.port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    let text = ''
    socket.on('error', () => {})
    const ended = new Promise(resolve => socket.once('close', resolve))
    socket.on('data', chunk => {
      text += chunk
      if (text.split('"offset"').length > COUNT) socket.end()
    })
    socket.write(Array.from({ length: COUNT }, (_, i) => publish(i + 1)).join(''))
    await ended
    const { result } = await gateway.api('history', { channel: 'pipelined', limit: -1 })
    const published = result.publications.map(({ data }) => data)
    const answered = [...text.matchAll(/"offset":(\d+)/g)].map(match => Number(match[1]))
    if (driver === 'node') {
      t.same(answered, [1, 2, 3], 'answered in order')
      t.same(published, [1, 2, 3])
    } else {
      t.same(answered, [], 'the connection is closed')
      t.same(published, [1], 'only the first request was executed')
    }
    socket.destroy()
    const alone = await gateway.api('publish', { channel: 'pipelined', data: 'alone' })
    t.equal(alone.result.offset, published.length + 1)
  })
}
