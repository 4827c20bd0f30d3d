import { spawnSync } from 'node:child_process'
import { connect as connectTcp } from 'node:net'
import t from 'tap'
import { MAX_LINE } from '../../fleet/link/link.js'
import { dialLink, listenLinks } from '../../fleet/link/tls.js'
import { withoutProgram } from '../kit/needs.js'
import { until } from '../kit/wait.js'
import { host, SECRET, secretSocket } from './agent-process.js'

/**
 * @param {any} t
 * @param {Record<string, any>} [options] of listenLinks
 */
async function listen(t, options = {}) {
  /** @type {any[]} */
  const lines = []
  /** @type {string[]} */
  const faults = []
  const server = await listenLinks({
    host,
    port: 0,
    secret: SECRET,
    run: 'r1',
    onLink: line => {
      lines.push(line)
      options.onLink?.(line)
    },
    onFault: text => faults.push(text),
    ...options.listen,
  })
  t.teardown(() => server.close())
  return { ...server, lines, faults }
}

/** @param {number} port @param {object} [options] */
const dial = (port, options) =>
  dialLink({ host, port, secret: SECRET, identity: 'r1/d1', timeout: 5000, ...options })

/** @param {any} link @returns {Promise<any>} its next message */
const messageOf = link =>
  new Promise(resolve => {
    link.onMessage = resolve
  })

/** @param {any} link @returns {Promise<string>} the reason of its close */
const closeOf = link =>
  new Promise(resolve => {
    link.onClose = resolve
  })

/** @param {any} t @returns a server, the dialled end of a link, and the server's end of it */
async function linked(t) {
  const server = await listen(t)
  const line = await dial(server.port)
  t.teardown(() => line.close())
  await until(() => server.lines.length === 1)
  return { server, line, there: server.lines[0] }
}

t.test('both ends of a link receive objects in order, even of many MiB', async t => {
  const { server, line } = await linked(t)
  t.equal(server.lines[0].identity, 'r1/d1')
  const long = 'ü'.repeat(4 << 20)
  /** @type {any[]} */
  const got = []
  const all = new Promise(resolve => {
    server.lines[0].onMessage = (/** @type {any} */ message) => got.push(message) === 3 && resolve(null)
  })
  line.send({ type: 'a' })
  line.send({ type: 'b', long })
  line.send({ type: 'c' })
  await all
  t.equal(got.map(({ type }) => type).join(''), 'abc')
  t.equal(got[1].long, long)
  const back = messageOf(line)
  server.lines[0].send({ type: 'd' })
  t.same(await back, { type: 'd' })
  t.throws(() => line.send({ long: 'x'.repeat(MAX_LINE) }), /too long/)
  const closed = closeOf(server.lines[0])
  await line.close()
  t.match(await closed, /closed/)
})

t.test('a message sent immediately after connecting is not lost', async t => {
  const server = await listen(t, { onLink: (/** @type {any} */ line) => line.send({ type: 'first' }) })
  const line = await dial(server.port)
  await new Promise(resolve => setImmediate(resolve))
  t.same(await messageOf(line), { type: 'first' })
  await line.close()
})

t.test('another secret or run is refused, with a reason on both sides', async t => {
  const server = await listen(t)
  await t.rejects(dial(server.port, { secret: 'cd'.repeat(32) }), { message: /does not have the secret/ })
  await t.rejects(dial(server.port, { identity: 'r2/d1' }), {
    message: /does not have the secret of this run/,
  })
  await until(() => server.faults.length === 2)
  t.match(server.faults[0], /^127\.0\.0\.1:\d+ was refused: the peer does not have the secret/)
  t.equal(server.lines.length, 0)
})

t.test('a trusted certificate does not replace the secret', { skip: withoutProgram('openssl') }, async t => {
  const folder = t.testdir({
    'evil.js': `
      import { readFileSync } from 'node:fs'
      import { createServer } from 'node:tls'
      import { dialLink } from '${new URL('../../fleet/link/tls.js', import.meta.url)}'
      const server = createServer({ key: readFileSync('key.pem'), cert: readFileSync('cert.pem') })
      server.on('secureConnection', socket => socket.on('error', () => {}))
      server.listen(0, '${host}', () =>
        dialLink({ host: '${host}', port: server.address().port, secret: '${SECRET}', identity: 'r1/d1' })
          .then(() => 'a line', error => error.message)
          .then(text => { console.log(text); process.exit() }))`,
    'package.json': '{"type":"module"}',
  })
  const options = { cwd: folder, encoding: /** @type {const} */ ('utf8') }
  const made = spawnSync(
    'openssl',
    'req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=evil'.split(' '),
    options,
  )
  t.equal(made.status, 0, made.stderr)
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: 'cert.pem' }
  const { stdout } = spawnSync(process.execPath, ['evil.js'], { ...options, env })
  t.match(stdout, /does not have the secret of this run/)
})

t.test('plain HTTP, garbage and an incomplete handshake are refused', async t => {
  const server = await listen(t)
  // On a busy machine 300 ms may be too short for a valid handshake.
  const impatient = await listen(t, { listen: { handshakeTimeout: 300 } })
  for (const [{ port }, text] of /** @type {const} */ ([
    [server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
    [server, '\0\x01\x02garbage'.repeat(100)],
    [impatient, ''],
  ])) {
    const socket = connectTcp(port, host)
    socket.on('error', () => {})
    socket.resume()
    socket.write(text)
    await new Promise(resolve => socket.once('close', resolve))
  }
  await until(() => server.faults.length === 2)
  t.match(server.faults[0], /does not use TLS/)
  await until(() => impatient.faults.length === 1)
  t.match(impatient.faults[0], /TLS_HANDSHAKE_TIMEOUT/)
  const line = await dial(server.port)
  await line.close()
})

t.test('the number of incomplete handshakes is bounded', async t => {
  const server = await listen(t)
  const sockets = Array.from({ length: 300 }, () => connectTcp(server.port, host).on('error', () => {}))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  let refused = 0
  await new Promise(resolve => {
    for (const socket of sockets) {
      socket.resume()
      socket.once('close', () => ++refused === 300 - 256 && resolve(null))
    }
  })
  await t.rejects(dial(server.port))
  for (const socket of sockets) socket.destroy()
  const line = await until(() => dial(server.port))
  await line.close()
})

t.test('a closed port is a one-line error', async t => {
  const server = await listen(t)
  await server.close()
  await t.rejects(dial(server.port), { message: `127.0.0.1:${server.port}: ECONNREFUSED` })
})

t.test('an overlong line or one that is not a JSON object closes the link with a reason', async t => {
  const server = await listen(t)
  for (const [text, reason] of /** @type {const} */ ([
    ['nonsense\n', /not a JSON object/],
    ['[1]\n', /not a JSON object/],
    ['"a"\n', /not a JSON object/],
    ['null\n', /not a JSON object/],
    ['x'.repeat(MAX_LINE + 1), /longer than 16 MB/],
  ])) {
    const count = server.lines.length
    const socket = secretSocket(server.port, 'r1/d1')
    await until(() => server.lines.length > count)
    const line = server.lines[count]
    line.onMessage = () => t.fail('no message')
    const closed = closeOf(line)
    socket.write(text)
    t.match(await closed, reason)
    socket.destroy()
  }
})

t.test('a peer that does not read is disconnected', async t => {
  const { there } = await linked(t)
  const closed = closeOf(there)
  const text = 'x'.repeat(4 << 20)
  for (let i = 0; i < 20; i++) there.send({ text })
  t.equal(await closed, 'the peer does not read')
})

t.test('a request to a peer that does not read is rejected immediately', async t => {
  const { there } = await linked(t)
  for (let i = 0; i < 2; i++) there.send({ text: 'x'.repeat(10 << 20) })
  await t.rejects(there.request({ type: 'late' }, { timeout: 2000 }), { message: 'the peer does not read' })
  t.throws(() => there.send({ text: 'x'.repeat(MAX_LINE) }), /too long/)
})

t.test('requests get their responses; refusals and closes are errors', async t => {
  const server = await listen(t)
  const line = await dial(server.port)
  line.onMessage = ({ type, ask }) => {
    if (type === 'late') return
    line.send({ type: 'sample' })
    line.send({ type: 'answer', ask: 99 })
    line.send(
      type === 'good' ? { type: 'answer', ask, result: { n: 1 } } : { type: 'answer', ask, error: 'no' },
    )
  }
  await until(() => server.lines.length === 1)
  const link = server.lines[0]
  let others = 0
  link.onMessage = () => others++
  const answers = await Promise.allSettled([link.request({ type: 'good' }), link.request({ type: 'bad' })])
  t.match(answers, [{ value: { n: 1 } }, { reason: { message: 'no' } }])
  t.equal(others, 2)
  await t.rejects(link.request({ type: 'late' }, { timeout: 50 }), { message: /no response within 0.05 s/ })
  const lost = t.rejects(link.request({ type: 'late' }), { message: /closed/ })
  line.close()
  await lost
  await t.rejects(link.request({ type: 'good' }), { message: /closed/ })
})
