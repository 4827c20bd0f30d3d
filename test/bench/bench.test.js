import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { promisify } from 'node:util'
import t from 'tap'
import { Client } from '../../bench/recovery.js'
import { script, skip } from './runs.js'

const bench = (/** @type {string[]} */ ...args) => promisify(execFile)(process.execPath, [script, ...args])

t.test('--help lists all measurements, --list also the scenarios', { skip }, async t => {
  const { stdout } = await bench('--help')
  t.match(
    stdout,
    / gc .*\n(?:.*\n)* {2}watch .*\n {2}poll .*\n {2}recovery .*\n {2}consumers .*\n(?:.*\n)* {2}republish /,
  )
  t.match((await bench('--list')).stdout, /^comet-million\n(?:.*\n)*soak\n(?:.*\n)*gc\n/)
})

t.test('an invalid command line fails with a one-line error', { skip }, async t => {
  for (const [args, code, stderr] of /** @type {[string[], number, RegExp][]} */ ([
    [['fam'], 2, /unknown scenario "fam"/],
    [['poll', '--speed=9'], 2, /unknown flag --speed/],
    [['poll', '--against=nginx'], 2, /unknown server "nginx".*: use halley, embedded, uws/],
    [['gc', '--server=idle'], 2, /unknown server "idle".*: use default, idle-off/],
    [['poll', '--set', 'n=9999999'], 1, /the open-files limit allows \d+ pollers/],
    [['soak', '--seconds', '60'], 1, /soak requires at least 1200/],
  ]))
    await t.rejects(bench(...args), { code, stderr }, args.join(' '))
})

t.test('recovery: the run fails if a client cannot connect', async t => {
  const server = createServer()
  server.on('upgrade', (_request, socket) => {
    // A refused client may reset its connection.
    socket.on('error', () => {})
    socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  await t.rejects(new Client(`http://127.0.0.1:${port}`).connected, { message: /a client could not connect/ })
})
