// Invalid answers of a server: a connection ends once, with a reason, and nothing is thrown.

import t from 'tap'
import { ACCEPT, frame, rawServer, request, SWITCHING, start } from './support.js'

const MIB = 1 << 20
const HTTP = 'HTTP/1.1 200 OK\r\n'
const OK = `${HTTP}Transfer-Encoding: chunked\r\n\r\n`
const LONG = 'x'.repeat(65_536)
const UPGRADED = 'HTTP/1.1 101 Switching Protocols\r\n'
const PROOF = `Upgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\nSec-WebSocket-Accept: ${ACCEPT}`
const UPGRADE = 'Upgrade: websocket\r\nConnection: Upgrade'
const WRONG = 'Sec-WebSocket-Accept: x3pPLMBiTxaQ9kYGzzhZRbK+xOo='
const CONNECTED = '{"id":1,"connect":{"client":"c","session":"s","node":"n"}}'

/** @param {string} fields @returns {string} a header with them */
const head = fields => `${HTTP}${fields}\r\n\r\n`
/** @param {string} part */
const notRequested = part => `WebSocket ${part} that was not requested`
/** @param {string} digits */
const hex = digits => Buffer.from(digits, 'hex')
/** @param {string} text @returns {Answer} */
const ended = text => socket => socket.end(text)
/** @param {string} text */
const chunk = text => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

/** @typedef {(socket: import('node:net').Socket, t: any) => Promise<void> | any} Answer resolves when it is complete */

/**
 * @param {any} t @param {string} transport @param {Answer} answer of a server
 * @returns {Promise<{code: number, reason: string, texts: string[]}>} end of the connection, and its messages
 */
async function against(t, transport, answer) {
  /** @type {Promise<void> | void} */
  let answered
  const server = await rawServer(t, async socket => {
    await request(socket)
    answered = answer(socket, t)
  })
  const { dialer, received } = start({ targets: [server.url], transport: /** @type {any} */ (transport) })
  const connection = dialer.dial(3, 7, {})
  t.match(connection, { slot: 3, number: 7 })
  const end = await received.end(connection)
  connection.close()
  connection.reset()
  connection.send('{}')
  await new Promise(resolve => setImmediate(resolve))
  t.equal(received.ends.length, 1, 'once')
  await answered
  return { ...end, texts: received.of(connection) }
}

/** Invalid HTTP. @type {[transport: string, name: string, reason: string, answer: string | Answer][]} */
const RESPONSES = [
  ['websocket', 'garbage', 'not HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['http_stream', 'garbage', 'not HTTP', `${'\xff'.repeat(100)}\n`],
  ['websocket', 'half a header', 'incomplete response', ended('HTTP/1.1 101 Swi')],
  ['sse', 'no answer', 'closed by target', socket => socket.end()],
  ['long_poll', 'a reset', 'ECONNRESET', socket => socket.resetAndDestroy()],
  ['sse', 'a status that is no number', 'not HTTP', 'HTTP/1.1 abc\r\n\r\n'],
  ['websocket', 'a refusal', 'HTTP 503', 'HTTP/1.1 503 No\r\n\r\n'],
  ['http_stream', 'a refusal', 'HTTP 404', 'HTTP/1.1 404 No\r\n\r\n'],
  ['long_poll', 'a refusal', 'HTTP 429', 'HTTP/1.1 429 No\r\n\r\n'],
  ['websocket', 'a redirect', 'HTTP 302', redirect],
  ['uni_sse', 'a redirect', 'HTTP 302', redirect],
  ['websocket', 'a plain page', 'HTTP 200', OK],
  ['http_stream', 'another protocol', 'HTTP 101', 'HTTP/1.1 101 Switching\r\n\r\n'],
  ['websocket', 'endless headers', 'headers too long', endless],
  ['uni_http_stream', 'endless headers', 'headers too long', endless],
  ['http_stream', 'a huge chunk', 'message too long', `${OK}ffffffff\r\n${'x'.repeat(2 * MIB)}`],
  ['sse', 'a chunk of TiB', 'bad chunk size', `${OK}ffffffffffff\r\n`],
  ['sse', 'a negative chunk', 'bad chunk size', `${OK}-5\r\n`],
  ['sse', 'a chunk with 0x', 'bad chunk size', `${OK}0x5\r\nabcde\r\n`],
  ['http_stream', 'a chunk longer than its size', 'bad chunk end', `${OK}3\r\nabcdef\r\n`],
  ['sse', 'endless trailers', 'headers too long', `${OK}0\r\n${'X-Trailer: x\r\n'.repeat(4000)}`],
  ['sse', 'a chunk size of nine digits', 'bad chunk size', `${OK}000000001\r\n`],
  ['sse', 'a line feed for a size', 'bad chunk size', `${OK}\r\n`],
  ['sse', 'a chunk without size', 'bad chunk size', `${OK}${'x'.repeat(20_000)}`],
  ['http_stream', 'a chunk cut off', 'incomplete response', ended(`${OK}ff\r\nabc`)],
  ['long_poll', 'a body cut off', 'incomplete response', ended(`${head('Content-Length: 500')}abc`)],
  [
    'long_poll',
    'two lengths',
    'bad Content-Length',
    `${head('Content-Length: 5\r\nContent-Length: 7')}abcdefg`,
  ],
  ['sse', 'a length that is no integer', 'bad Content-Length', `${HTTP}Content-Length: 0.5e9\r\n\r\nabc`],
  ['sse', 'another encoding', 'unknown Transfer-Encoding', `${HTTP}Transfer-Encoding: gzip, chunked\r\n\r\n`],
  ['http_stream', 'a web page', 'wrong content type text/html', `${head('Content-Type: text/html')}<html`],
  ['uni_sse', 'JSON', 'wrong content type application/json', head('Content-Type: application/json')],
  ['http_stream', 'an ended stream', 'closed by target', `${OK}0\r\n\r\n`],
  ['http_stream', 'a line without end', 'message too long', OK + chunk('x'.repeat(2 * MIB))],
  ['long_poll', 'no session', 'no session', `${HTTP}Content-Length: 0\r\n\r\n`],
  ['http_stream', 'an odd disconnect', 'undefined', OK + chunk('{"push":{"disconnect":{"code":"x"}}}\n')],
  ['websocket', 'an end', 'closed by target', ended(SWITCHING)],
]

/** Invalid handshakes. @type {[transport: string, name: string, reason: string, headers: string][]} */
const HANDSHAKES = [
  ['websocket', 'no upgrade', 'not a WebSocket: wrong Upgrade', 'Connection: Upgrade'],
  ['websocket', 'another upgrade', 'not a WebSocket: wrong Upgrade', 'Upgrade: h2c\r\nConnection: Upgrade'],
  [
    'websocket',
    'no connection upgrade',
    'not a WebSocket: wrong Connection',
    'Upgrade: websocket\r\nConnection: close',
  ],
  ['uni_websocket', 'no proof', 'not a WebSocket: wrong Sec-WebSocket-Accept', UPGRADE],
  ['uni_websocket', 'a wrong proof', 'not a WebSocket: wrong Sec-WebSocket-Accept', `${UPGRADE}\r\n${WRONG}`],
  [
    'websocket',
    'an extension',
    notRequested('extension'),
    `${PROOF}\r\nSec-WebSocket-Extensions: permessage-deflate`,
  ],
  ['websocket', 'a subprotocol', notRequested('subprotocol'), `${PROOF}\r\nSec-WebSocket-Protocol: mqtt`],
]

/** Invalid frames, and the close code of the client. @type {[name: string, reason: string, bytes: Buffer | Buffer[], code: number][]} */
const FRAMES = [
  ['reserved bits', 'frame with reserved bits', Buffer.of(0xc1, 0), 1002],
  ['a reserved opcode', 'frame with a reserved opcode', Buffer.of(0x83, 0), 1002],
  ['a reserved control opcode', 'frame with a reserved opcode', Buffer.of(0x8b, 0), 1002],
  ['a mask', 'masked frame', Buffer.of(0x81, 0x82, 0, 0, 0, 0, 123, 125), 1002],
  ['a long control frame', 'control frame too long', frame('x'.repeat(126), 0x89), 1002],
  ['a fragmented control frame', 'fragmented control frame', frame('x', 0x09), 1002],
  ['a continuation of nothing', 'continuation without a message', frame('x', 0x80), 1002],
  ['half a close code', 'close frame of one byte', Buffer.of(0x88, 1, 3), 1002],
  ['text that is no UTF-8', 'text is not UTF-8', frame(hex('7b22c3282220')), 1007],
  ['a reason that is no UTF-8', 'close reason is not UTF-8', frame(hex('0fa1c328'), 0x88), 1007],
  ['a nested message', 'message within a fragmented one', [frame('{', 0x01), frame('}', 0x81)], 1002],
  ['fragments that are no UTF-8', 'text is not UTF-8', [frame(hex('c3'), 0x01), frame('x', 0x80)], 1007],
  ...[0, 999, 1004, 1005, 1006, 1015, 2999, 5000].map(
    code =>
      /** @type {[string, string, Buffer, number]} */ ([
        `close code ${code}`,
        'close frame with a reserved code',
        frame(Buffer.of(code >> 8, code & 255), 0x88),
        1002,
      ]),
  ),
  ['a huge frame', 'message too long', [hex('817fff00000000000000'), Buffer.alloc(2 * MIB)], 0],
  ['endless fragments', 'message too long', [frame(LONG, 0x01), ...Array(19).fill(frame(LONG, 0x00))], 0],
]

/** Other ends. @type {[transport: string, name: string, answer: Answer, end: object][]} */
const ENDS = [
  [
    'http_stream',
    'a last chunk with zeros',
    socket => socket.write(`${OK}${chunk('{}\n')}00000000\r\n\r\n`),
    { reason: 'closed by target', texts: ['{}'] },
  ],
  [
    'uni_sse',
    'a disconnect',
    socket =>
      socket.write(`${OK}${chunk('\r\ndata: {"disconnect":{"code":3500,"reason":"invalid token"}}\n\n')}`),
    { code: 3500, reason: 'invalid token' },
  ],
  ['websocket', 'no close code', switched(frame('', 0x88)), { code: 1005, reason: 'closed by target' }],
  ['uni_websocket', 'a close', switched(frame(hex('0fa1627965'), 0x88)), { code: 4001, reason: 'bye' }],
]

/** @param {import('node:net').Socket} socket */
function redirect(socket) {
  socket.write('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n')
}

/** @param {import('node:net').Socket} socket */
function endless(socket) {
  socket.write('HTTP/1.1 200 OK\r\n')
  const line = `X-Header: ${'x'.repeat(1000)}\r\n`
  const more = () => {
    while (!socket.destroyed && socket.write(line));
  }
  socket.on('drain', more)
  more()
}

/** @param {Buffer | Buffer[]} bytes @param {number} [code] with which the client has to close @returns {Answer} */
function switched(bytes, code = 0) {
  return (socket, t) => {
    socket.write(Buffer.concat([Buffer.from(SWITCHING), bytes].flat()))
    const closed = new Promise(resolve =>
      socket.on('data', data => {
        const at = data.indexOf(0x88)
        if (at < 0) return
        resolve(code && data.readUInt16BE(at + 6))
        // The client has answered a close.
        socket.end()
      }),
    )
    // The client ends the connection before the server has read the code.
    if (code) return closed.then(found => t.equal(found, code, 'close code of the client'))
  }
}

/** @param {string} transport @param {string} name @param {Answer} answer @param {object} end */
const test = (transport, name, answer, end) =>
  t.test(`${transport}: ${name}`, async t =>
    t.match(await against(t, transport, answer), { code: 0, ...end }),
  )

for (const [transport, name, reason, answer] of RESPONSES)
  test(transport, name, typeof answer === 'string' ? socket => socket.write(answer, 'latin1') : answer, {
    reason,
  })
for (const [transport, name, reason, headers] of HANDSHAKES)
  test(transport, name, socket => socket.write(`${UPGRADED}${headers}\r\n\r\n`), { reason })
for (const [name, reason, bytes, code] of FRAMES) test('websocket', name, switched(bytes, code), { reason })
for (const row of ENDS) test(...row)

t.test('frames may be split anywhere', async t => {
  const texts = ['{"a":1}', `{"b":"${'x'.repeat(300)}"}`, '{}', `{"c":"${'y'.repeat(70_000)}"}`, '{"d":"€"}']
  const bytes = Buffer.concat([
    frame(`${texts[0]}\n${texts[1]}`),
    frame(texts[2], 0x82),
    Buffer.concat([
      frame(texts[3].slice(0, 5), 0x01),
      frame('hello', 0x89),
      frame('', 0x00),
      frame(texts[3].slice(5, 60_000), 0x00),
      frame('', 0x8a),
      frame(texts[3].slice(60_000), 0x80),
    ]),
    frame(texts[4]),
    frame(Buffer.from([15, 160, 98, 121, 101]), 0x88),
  ])
  for (const size of [1, 7, 1000]) {
    let answer = Buffer.alloc(0)
    const server = await rawServer(t, async socket => {
      socket.setNoDelay(true)
      await request(socket)
      socket.on('data', data => {
        answer = Buffer.concat([answer, data])
        if (data.includes(Buffer.from([0x88, 0x82]))) socket.end()
      })
      const all = Buffer.concat([Buffer.from(SWITCHING), bytes])
      // One byte at a time only in the critical parts: the handshake and the frame headers.
      for (let at = 0; at < all.length && !socket.destroyed; ) {
        const next = size === 1 && at > 900 && all.length - at > 500 ? 997 : size
        await new Promise(resolve => socket.write(all.subarray(at, at + next), resolve))
        at += next
      }
    })
    const { dialer, received } = start({ targets: [server.url] })
    const connection = dialer.dial(0, 0, {})
    t.same(await received.end(connection), { code: 4000, reason: 'bye' }, `${size} at a time`)
    t.ok(
      received.of(connection).every((text, i) => text === texts[i]),
      'all is whole',
    )
    t.equal(received.messages.length, texts.length)
    t.ok(answer.includes(Buffer.concat([Buffer.of(0x8a, 0x85, 0, 0, 0, 0), Buffer.from('hello')])), 'a pong')
    t.notOk(connection.rest, 'no data is retained')
  }
})

t.test('chunks and lines may be split anywhere', async t => {
  const texts = [CONNECTED, '{"a":"€"}', `{"b":"${'x'.repeat(3000)}"}`, '{}']
  const body = texts.map(text => `${text}\n`).join('')
  for (const size of [1, 3, 1000]) {
    const server = await rawServer(t, async socket => {
      socket.setNoDelay(true)
      await request(socket)
      const data = Buffer.from(body)
      let all = `HTTP/1.1 100 Continue\r\n\r\n${OK}`
      // Chunks independent of lines, every other one with an extension.
      for (let at = 0; at < data.length; at += 37) {
        const length = Math.min(37, data.length - at)
        const extension = at % 2 ? ';x=y' : ''
        all += `${length.toString(16).toUpperCase()}${extension}\r\n${data.toString('latin1', at, at + 37)}\r\n`
      }
      all += '0\r\nTrailer: 1\r\n\r\n'
      for (let at = 0; at < all.length; at += size)
        await new Promise(resolve => socket.write(all.slice(at, at + size), 'latin1', resolve))
    })
    const { dialer, received } = start({ targets: [server.url], transport: 'http_stream' })
    const connection = dialer.dial(0, 0, {})
    t.same(await received.end(connection), { code: 0, reason: 'closed by target' }, `${size} at a time`)
    t.same(received.of(connection), texts)
  }
})

t.test('a listener may close a connection while it receives data', async t => {
  const server = await rawServer(t, async socket => {
    await request(socket)
    socket.write(Buffer.concat([Buffer.from(SWITCHING), frame('{"n":1}\n{"n":2}'), frame('{"n":3}')]))
  })
  for (const how of /** @type {const} */ (['reset', 'close'])) {
    const { dialer, received } = start({ targets: [server.url] })
    received.onMessage = ({ connection }) => connection[how]()
    const connection = dialer.dial(0, 0, {})
    if (how === 'close') await received.until(() => received.messages.length > 0 && connection.state > 1)
    else await received.end(connection)
    t.same(received.of(connection), ['{"n":1}'], how)
    connection.reset()
  }
})

t.test('a target that does not read is disconnected', async t => {
  const server = await rawServer(t, async socket => {
    await request(socket)
    socket.pause()
    socket.write(Buffer.concat([Buffer.from(SWITCHING), frame('{"id":1,"connect":{}}')]))
  })
  const { dialer, received } = start({ targets: [server.url] })
  const connection = dialer.dial(0, 0, {})
  await received.until(() => received.messages.length > 0)
  const text = 'x'.repeat(100_000)
  for (let i = 0; i < 200 && received.ends.length === 0; i++) {
    connection.send(text)
    await new Promise(resolve => setImmediate(resolve))
  }
  t.match(await received.end(connection), { reason: 'target does not read' })
})

t.test('a target that never responds times out after 20 s', async t => {
  const { port, url } = await rawServer(t, () => {})
  t.ok(port)
  const { dialer, received } = start({ targets: [url] })
  const connections = ['', ''].map((_, i) => dialer.dial(i, i, {}))
  // Advances the only timer of the dialer.
  dialer.tick += 20
  for (const connection of connections) t.same(await received.end(connection), { code: 0, reason: 'timeout' })
})
