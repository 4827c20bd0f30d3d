import { spawnSync } from 'node:child_process'
import { connect as connectTcp } from 'node:net'
import { connect } from 'node:tls'
import t from 'tap'
import { MAX_LINE } from '../../fleet/link/link.js'
import { dialLink, listenLinks } from '../../fleet/link/tls.js'
import { withoutProgram } from '../kit/needs.js'
import { until } from '../kit/wait.js'

const SECRET = 'ab'.repeat(32)
const host = '127.0.0.1'

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

t.test('both ends of a line get objects, in order, also such of many MiB', async t => {
  const server = await listen(t)
  const line = await dial(server.port)
  await until(() => server.lines.length === 1)
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
  t.same(
    got.map(({ type }) => type),
    ['a', 'b', 'c'],
  )
  t.equal(got[1].long, long)
  const back = new Promise(resolve => {
    line.onMessage = resolve
  })
  server.lines[0].send({ type: 'd' })
  t.same(await back, { type: 'd' })
  t.throws(() => line.send({ long: 'x'.repeat(MAX_LINE) }), /too long/)
  const closed = new Promise(resolve => {
    server.lines[0].onClose = resolve
  })
  await line.close()
  t.match(await closed, /closed/)
})

t.test('what is sent as soon as the line is there is not lost', async t => {
  const server = await listen(t, { onLink: (/** @type {any} */ line) => line.send({ type: 'first' }) })
  const line = await dial(server.port)
  await new Promise(resolve => setImmediate(resolve))
  const message = await new Promise(resolve => {
    line.onMessage = resolve
  })
  t.same(message, { type: 'first' })
  await line.close()
})

t.test('another secret and another run are refused, on both sides with a clear line', async t => {
  const server = await listen(t)
  await t.rejects(dial(server.port, { secret: 'cd'.repeat(32) }), { message: /does not know the secret/ })
  await t.rejects(dial(server.port, { identity: 'r2/d1' }), {
    message: /does not know the secret of this run/,
  })
  await until(() => server.faults.length === 2)
  t.match(server.faults[0], /^127\.0\.0\.1:\d+ was refused: the other side does not know the secret/)
  t.equal(server.lines.length, 0)
})

t.test(
  'a certificate that everybody trusts does not stand for the secret',
  { skip: withoutProgram('openssl') },
  async t => {
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
    t.match(stdout, /does not know the secret of this run/)
  },
)

t.test('plain HTTP, garbage and silence are refused, and others are served meanwhile', async t => {
  const server = await listen(t)
  // On a busy machine 300 ms may be too short for a sound handshake, too.
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
  t.match(server.faults[0], /does not speak TLS/)
  await until(() => impatient.faults.length === 1)
  t.match(impatient.faults[0], /TLS_HANDSHAKE_TIMEOUT/)
  const line = await dial(server.port)
  await line.close()
})

t.test('strangers are bounded in number', async t => {
  const server = await listen(t)
  const strangers = Array.from({ length: 300 }, () => connectTcp(server.port, host).on('error', () => {}))
  t.teardown(() => {
    for (const socket of strangers) socket.destroy()
  })
  let refused = 0
  await new Promise(resolve => {
    for (const socket of strangers) {
      socket.resume()
      socket.once('close', () => ++refused === 300 - 256 && resolve(null))
    }
  })
  await t.rejects(dial(server.port))
  for (const socket of strangers) socket.destroy()
  // They are gone for the other side soon.
  const line = await until(() => dial(server.port))
  await line.close()
})

t.test('nobody listens, or who does speaks no TLS: one line', async t => {
  const server = await listen(t)
  await server.close()
  await t.rejects(dial(server.port), { message: `127.0.0.1:${server.port}: ECONNREFUSED` })
})

t.test('lines that are too long or no JSON object close the line, with the reason', async t => {
  const server = await listen(t)
  for (const [text, reason] of /** @type {const} */ ([
    ['nonsense\n', /not a JSON object/],
    ['[1]\n', /not a JSON object/],
    ['"a"\n', /not a JSON object/],
    ['null\n', /not a JSON object/],
    ['x'.repeat(MAX_LINE + 1), /more than 16 MB/],
  ])) {
    const count = server.lines.length
    const socket = connect({
      host,
      port: server.port,
      minVersion: 'TLSv1.3',
      pskCallback: () => ({ psk: Buffer.from(SECRET, 'hex'), identity: 'r1/d1' }),
      checkServerIdentity: () => undefined,
    })
    socket.on('error', () => {})
    await until(() => server.lines.length > count)
    const line = server.lines[count]
    line.onMessage = () => t.fail('no message')
    const closed = new Promise(resolve => {
      line.onClose = resolve
    })
    socket.write(text)
    t.match(await closed, reason)
    socket.destroy()
  }
})

t.test('who does not read is closed before it fills the memory', async t => {
  const server = await listen(t)
  const deaf = await dial(server.port)
  t.teardown(() => deaf.close())
  await until(() => server.lines.length === 1)
  const [line] = server.lines
  const closed = new Promise(resolve => {
    line.onClose = resolve
  })
  const text = 'x'.repeat(4 << 20)
  for (let i = 0; i < 20; i++) line.send({ text })
  t.equal(await closed, 'the peer does not read')
})

t.test('a request that finds the peer not reading is rejected at once', async t => {
  const server = await listen(t)
  const deaf = await dial(server.port)
  t.teardown(() => deaf.close())
  await until(() => server.lines.length === 1)
  const [line] = server.lines
  for (let i = 0; i < 2; i++) line.send({ text: 'x'.repeat(10 << 20) })
  await t.rejects(line.request({ type: 'late' }, { timeout: 2000 }), { message: 'the peer does not read' })
  t.throws(() => line.send({ text: 'x'.repeat(MAX_LINE) }), /too long/)
})

t.test('questions get their answers, refusals and ends are errors', async t => {
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
  await t.rejects(link.request({ type: 'late' }, { timeout: 50 }), { message: /no answer within 0.05 s/ })
  const lost = t.rejects(link.request({ type: 'late' }), { message: /closed/ })
  line.close()
  await lost
  await t.rejects(link.request({ type: 'good' }), { message: /closed/ })
})
