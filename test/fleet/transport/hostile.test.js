// Servers that do what none should: a connection ends once, with a reason, and nothing is thrown.

import t from 'tap'
import { ACCEPT, frame, rawServer, request, SWITCHING, start } from './support.js'

const MIB = 1 << 20
const OK = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const PROOF = ['Upgrade: WebSocket', 'Connection: keep-alive, upgrade', `Sec-WebSocket-Accept: ${ACCEPT}`]
const CONNECTED = '{"id":1,"connect":{"client":"c","session":"s","node":"n"}}'

/** @param {string} text */
const chunk = text => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

/**
 * Resolves when it has heard all that it waits for.
 * @typedef {(socket: import('node:net').Socket, head: string, t: any) => Promise<void> | any} Answer
 */

/**
 * What comes of a server that answers like this.
 * @param {any} t
 * @param {string} transport
 * @param {Answer} answer
 */
async function against(t, transport, answer) {
  /** @type {Promise<void> | void} */
  let answered
  const server = await rawServer(t, async socket => {
    answered = answer(socket, await request(socket), t)
  })
  const { dialer, heard } = start({ targets: [server.url], transport: /** @type {any} */ (transport) })
  const connection = dialer.dial(3, 7, {})
  t.match(connection, { slot: 3, number: 7 })
  const end = await heard.end(connection)
  connection.close()
  connection.reset()
  connection.send('{}')
  await new Promise(resolve => setImmediate(resolve))
  t.equal(heard.ends.length, 1, 'once')
  await answered
  return { ...end, texts: heard.of(connection) }
}

/** @type {[string, string, Answer, object][]} */
const CASES = [
  ['garbage', 'websocket', socket => socket.write('SSH-2.0-OpenSSH_9.2\r\n'), { reason: 'no HTTP' }],
  ['garbage', 'http_stream', socket => socket.write(`${'\xff'.repeat(100)}\n`), { reason: 'no HTTP' }],
  ['half a header', 'websocket', socket => socket.end('HTTP/1.1 101 Swi'), { reason: 'answer cut off' }],
  ['silence', 'sse', socket => socket.end(), { reason: 'closed by target' }],
  ['a cut', 'long_poll', socket => socket.resetAndDestroy(), { reason: 'ECONNRESET' }],
  ['no number', 'sse', socket => socket.write('HTTP/1.1 abc\r\n\r\n'), { reason: 'no HTTP' }],
  ['a refusal', 'websocket', socket => socket.write('HTTP/1.1 503 No\r\n\r\n'), { reason: 'HTTP 503' }],
  ['a refusal', 'http_stream', socket => socket.write('HTTP/1.1 404 No\r\n\r\n'), { reason: 'HTTP 404' }],
  ['a refusal', 'long_poll', socket => socket.write('HTTP/1.1 429 No\r\n\r\n'), { reason: 'HTTP 429' }],
  ['a redirect', 'websocket', redirect, { reason: 'HTTP 302' }],
  ['a redirect', 'uni_sse', redirect, { reason: 'HTTP 302' }],
  ['a plain page', 'websocket', socket => socket.write(OK), { reason: 'HTTP 200' }],
  [
    'another protocol',
    'http_stream',
    socket => socket.write('HTTP/1.1 101 Switching\r\n\r\n'),
    { reason: 'HTTP 101' },
  ],
  ['endless headers', 'websocket', endless, { reason: 'headers too long' }],
  ['endless headers', 'uni_http_stream', endless, { reason: 'headers too long' }],
  [
    'a huge chunk',
    'http_stream',
    socket => socket.write(`${OK}ffffffff\r\n${'x'.repeat(2 * MIB)}`),
    { reason: 'message too long' },
  ],
  ['a chunk of TiB', 'sse', socket => socket.write(`${OK}ffffffffffff\r\n`), { reason: 'bad chunk size' }],
  ['a negative chunk', 'sse', socket => socket.write(`${OK}-5\r\n`), { reason: 'bad chunk size' }],
  ['a chunk in words', 'sse', socket => socket.write(`${OK}0x5\r\nabcde\r\n`), { reason: 'bad chunk size' }],
  [
    'a chunk longer than it says',
    'http_stream',
    socket => socket.write(`${OK}3\r\nabcdef\r\n`),
    { reason: 'bad chunk end' },
  ],
  ['endless trailers', 'sse', socket => trailers(socket), { reason: 'headers too long' }],
  [
    'a chunk with nine digits',
    'sse',
    socket => socket.write(`${OK}000000001\r\n`),
    { reason: 'bad chunk size' },
  ],
  ['a line feed for a size', 'sse', socket => socket.write(`${OK}\r\n`), { reason: 'bad chunk size' }],
  [
    'a last chunk with zeros',
    'http_stream',
    socket => socket.write(`${OK}${chunk('{}\n')}00000000\r\n\r\n`),
    { reason: 'closed by target', texts: ['{}'] },
  ],
  ['a chunk cut off', 'http_stream', socket => socket.end(`${OK}ff\r\nabc`), { reason: 'answer cut off' }],
  [
    'a body cut off',
    'long_poll',
    socket => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nabc'),
    { reason: 'answer cut off' },
  ],
  [
    'two lengths',
    'long_poll',
    socket => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcdefg'),
    { reason: 'bad Content-Length' },
  ],
  [
    'another encoding',
    'sse',
    socket => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'),
    { reason: 'unknown Transfer-Encoding' },
  ],
  [
    'a web page',
    'http_stream',
    socket => socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n<html'),
    { reason: 'wrong content type text/html' },
  ],
  [
    'JSON for events',
    'uni_sse',
    socket => socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}\n'),
    { reason: 'wrong content type application/json' },
  ],
  [
    'a chunk without size',
    'sse',
    socket => socket.write(`${OK}${'x'.repeat(20_000)}`),
    { reason: 'bad chunk size' },
  ],
  [
    'an odd length',
    'sse',
    socket => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0.5e9\r\n\r\nabc'),
    { reason: 'bad Content-Length' },
  ],
  [
    'an ended stream',
    'http_stream',
    socket => socket.write(`${OK}0\r\n\r\n`),
    { reason: 'closed by target' },
  ],
  [
    'a line without end',
    'http_stream',
    socket => socket.write(OK + chunk('x'.repeat(2 * MIB))),
    { reason: 'message too long' },
  ],
  [
    'no session',
    'long_poll',
    socket => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
    { reason: 'no session' },
  ],
  [
    'an odd disconnect',
    'http_stream',
    socket => socket.write(OK + chunk('{"push":{"disconnect":{"code":"x"}}}\n')),
    { code: 0, reason: 'undefined' },
  ],
  [
    'a disconnect',
    'uni_sse',
    socket =>
      socket.write(`${OK}${chunk('\r\ndata: {"disconnect":{"code":3500,"reason":"invalid token"}}\n\n')}`),
    { code: 3500, reason: 'invalid token' },
  ],
  ['no upgrade', 'websocket', handshake('Connection: Upgrade'), { reason: 'no WebSocket: wrong Upgrade' }],
  [
    'another upgrade',
    'websocket',
    handshake('Upgrade: h2c', 'Connection: Upgrade'),
    { reason: 'no WebSocket: wrong Upgrade' },
  ],
  [
    'a connection that is not upgraded',
    'websocket',
    handshake('Upgrade: websocket', 'Connection: keep-alive'),
    { reason: 'no WebSocket: wrong Connection' },
  ],
  [
    'no proof',
    'websocket',
    handshake('Upgrade: websocket', 'Connection: Upgrade'),
    { reason: 'no WebSocket: wrong Sec-WebSocket-Accept' },
  ],
  [
    'a wrong proof',
    'uni_websocket',
    handshake(
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Accept: x3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
    ),
    { reason: 'no WebSocket: wrong Sec-WebSocket-Accept' },
  ],
  [
    'an extension',
    'websocket',
    handshake(...PROOF, 'Sec-WebSocket-Extensions: permessage-deflate'),
    { reason: 'WebSocket extension that was not asked for' },
  ],
  [
    'a subprotocol',
    'websocket',
    handshake(...PROOF, 'Sec-WebSocket-Protocol: mqtt'),
    { reason: 'WebSocket subprotocol that was not asked for' },
  ],
  ['reserved bits', 'websocket', switched(Buffer.of(0xc1, 0), 1002), { reason: 'frame with reserved bits' }],
  [
    'a reserved opcode',
    'websocket',
    switched(Buffer.of(0x83, 0), 1002),
    { reason: 'frame with a reserved opcode' },
  ],
  [
    'a reserved control opcode',
    'websocket',
    switched(Buffer.of(0x8b, 0), 1002),
    { reason: 'frame with a reserved opcode' },
  ],
  [
    'a mask',
    'websocket',
    switched(Buffer.of(0x81, 0x82, 0, 0, 0, 0, 123, 125), 1002),
    { reason: 'masked frame' },
  ],
  [
    'a long control frame',
    'websocket',
    switched(frame('x'.repeat(126), 0x89), 1002),
    { reason: 'control frame too long' },
  ],
  [
    'a fragmented control frame',
    'websocket',
    switched(frame('x', 0x09), 1002),
    { reason: 'fragmented control frame' },
  ],
  [
    'a continuation of nothing',
    'websocket',
    switched(frame('x', 0x80), 1002),
    { reason: 'continuation of no message' },
  ],
  [
    'a message within another',
    'websocket',
    switched(Buffer.concat([frame('{', 0x01), frame('}', 0x81)]), 1002),
    { reason: 'message within a fragmented one' },
  ],
  [
    'text that is no UTF-8',
    'websocket',
    switched(frame(Buffer.from('7b22c3282220', 'hex')), 1007),
    { reason: 'text is no UTF-8' },
  ],
  [
    'fragments that are no UTF-8',
    'websocket',
    switched(Buffer.concat([frame(Buffer.of(0xc3), 0x01), frame('x', 0x80)]), 1007),
    { reason: 'text is no UTF-8' },
  ],
  [
    'a close reason that is no UTF-8',
    'websocket',
    switched(frame(Buffer.from('0fa1c328', 'hex'), 0x88), 1007),
    { reason: 'close reason is no UTF-8' },
  ],
  ...[0, 999, 1004, 1005, 1006, 1015, 2999, 5000].map(
    code =>
      /** @type {[string, string, any, object]} */ ([
        `close code ${code}`,
        'websocket',
        switched(frame(Buffer.of(code >> 8, code & 255), 0x88), 1002),
        { reason: 'close frame with a reserved code' },
      ]),
  ),
  [
    'a huge frame',
    'websocket',
    switched(Buffer.concat([Buffer.of(0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0), Buffer.alloc(2 * MIB)])),
    { reason: 'message too long' },
  ],
  [
    'endless fragments',
    'websocket',
    switched(
      Buffer.concat(Array.from({ length: 20 }, (_, i) => frame('x'.repeat(65_536), i === 0 ? 0x01 : 0x00))),
    ),
    { reason: 'message too long' },
  ],
  [
    'half a close code',
    'websocket',
    switched(Buffer.of(0x88, 1, 3), 1002),
    { reason: 'close frame of one byte' },
  ],
  [
    'a close without code',
    'websocket',
    switched(frame('', 0x88)),
    { code: 1005, reason: 'closed by target' },
  ],
  [
    'a close',
    'uni_websocket',
    switched(frame(Buffer.from('\x0f\xa1bye', 'latin1'), 0x88)),
    { code: 4001, reason: 'bye' },
  ],
  ['an end', 'websocket', socket => socket.end(SWITCHING), { code: 0, reason: 'closed by target' }],
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

/**
 * @param {Buffer} bytes
 * @param {number} [code] with which the client has to close
 */
function switched(bytes, code = 0) {
  return (
    /** @type {import('node:net').Socket} */ socket,
    /** @type {string} */ _head,
    /** @type {any} */ t,
  ) => {
    socket.write(Buffer.concat([Buffer.from(SWITCHING), bytes]))
    const told = new Promise(resolve =>
      socket.on('data', data => {
        const at = data.indexOf(0x88)
        if (at < 0) return
        resolve(code && data.readUInt16BE(at + 6))
        // Closes when the client has answered a close.
        socket.end()
      }),
    )
    // The client has ended the connection before the server has heard why.
    if (code) return told.then(found => t.equal(found, code, 'the code that it is told'))
  }
}

/** @param {...string} headers */
function handshake(...headers) {
  return (/** @type {import('node:net').Socket} */ socket) =>
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers.join('\r\n')}\r\n\r\n`)
}

/** @param {import('node:net').Socket} socket */
function trailers(socket) {
  socket.write(`${OK}0\r\n`)
  for (let i = 0; i < 100; i++) socket.write(`X-Trailer: ${'x'.repeat(500)}\r\n`)
}

for (const [name, transport, answer, expected] of CASES)
  t.test(`${transport}: ${name}`, async t =>
    t.match(await against(t, transport, answer), { code: 0, ...expected }),
  )

t.test('frames come in pieces of any size', async t => {
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
      // One byte at a time only where it matters: in the handshake and the frames' heads.
      for (let at = 0; at < all.length && !socket.destroyed; ) {
        const next = size === 1 && at > 900 && all.length - at > 500 ? 997 : size
        await new Promise(resolve => socket.write(all.subarray(at, at + next), resolve))
        at += next
      }
    })
    const { dialer, heard } = start({ targets: [server.url] })
    const connection = dialer.dial(0, 0, {})
    t.same(await heard.end(connection), { code: 4000, reason: 'bye' }, `${size} at a time`)
    t.ok(
      heard.of(connection).every((text, i) => text === texts[i]),
      'all is whole',
    )
    t.equal(heard.messages.length, texts.length)
    t.ok(answer.includes(Buffer.concat([Buffer.of(0x8a, 0x85, 0, 0, 0, 0), Buffer.from('hello')])), 'a pong')
    t.notOk(connection.rest, 'nothing is kept')
  }
})

t.test('chunks and lines come in pieces of any size', async t => {
  const texts = [CONNECTED, '{"a":"€"}', `{"b":"${'x'.repeat(3000)}"}`, '{}']
  const body = texts.map(text => `${text}\n`).join('')
  for (const size of [1, 3, 1000]) {
    const server = await rawServer(t, async socket => {
      socket.setNoDelay(true)
      await request(socket)
      const data = Buffer.from(body)
      let all = `HTTP/1.1 100 Continue\r\n\r\n${OK}`
      // Chunks that have nothing to do with lines, every other one with an extension.
      for (let at = 0; at < data.length; at += 37) {
        const length = Math.min(37, data.length - at)
        const extension = at % 2 ? ';x=y' : ''
        all += `${length.toString(16).toUpperCase()}${extension}\r\n${data.toString('latin1', at, at + 37)}\r\n`
      }
      all += '0\r\nTrailer: 1\r\n\r\n'
      for (let at = 0; at < all.length; at += size)
        await new Promise(resolve => socket.write(all.slice(at, at + size), 'latin1', resolve))
    })
    const { dialer, heard } = start({ targets: [server.url], transport: 'http_stream' })
    const connection = dialer.dial(0, 0, {})
    t.same(await heard.end(connection), { code: 0, reason: 'closed by target' }, `${size} at a time`)
    t.same(heard.of(connection), texts)
  }
})

t.test('a listener may end a connection in the middle of what came', async t => {
  const server = await rawServer(t, async socket => {
    await request(socket)
    socket.write(Buffer.concat([Buffer.from(SWITCHING), frame('{"n":1}\n{"n":2}'), frame('{"n":3}')]))
  })
  for (const how of /** @type {const} */ (['reset', 'close'])) {
    const { dialer, heard } = start({ targets: [server.url] })
    heard.onMessage = ({ connection }) => connection[how]()
    const connection = dialer.dial(0, 0, {})
    if (how === 'close') await heard.until(() => heard.messages.length > 0 && connection.state > 1)
    else await heard.end(connection)
    t.same(heard.of(connection), ['{"n":1}'], how)
    connection.reset()
  }
})

t.test('a target that does not read is left', async t => {
  const server = await rawServer(t, async socket => {
    await request(socket)
    socket.pause()
    socket.write(Buffer.concat([Buffer.from(SWITCHING), frame('{"id":1,"connect":{}}')]))
  })
  const { dialer, heard } = start({ targets: [server.url] })
  const connection = dialer.dial(0, 0, {})
  await heard.until(() => heard.messages.length > 0)
  const text = 'x'.repeat(100_000)
  for (let i = 0; i < 200 && heard.ends.length === 0; i++) {
    connection.send(text)
    await new Promise(resolve => setImmediate(resolve))
  }
  t.match(await heard.end(connection), { reason: 'target does not read' })
})

t.test('who never answers is given up after 20 s', async t => {
  const { port, url } = await rawServer(t, () => {})
  t.ok(port)
  const { dialer, heard } = start({ targets: [url] })
  const connections = ['', ''].map((_, i) => dialer.dial(i, i, {}))
  // The dialer's one timer is what passes here.
  dialer.tick += 20
  for (const connection of connections) t.same(await heard.end(connection), { code: 0, reason: 'timeout' })
})
