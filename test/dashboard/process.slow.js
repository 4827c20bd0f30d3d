// The program on a real terminal: start and exit.

import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { EXIT_CODES } from '../../src/base/dashboard-exit.js'
import { socketPath } from '../../src/metrics/socket-path.js'
import { tempDir } from '../kit/folders.js'
import { bin } from '../kit/gateway.js'
import { assertRestored, needsTmux, Tmux } from '../kit/tmux.js'
import { mockSnapshots } from '../metrics/mock.js'
import { mock, open, run } from './support.js'

needsTmux(t)

t.test('an error is printed after the terminal is restored', async t => {
  const gateway = await mock(t)
  const terminal = await open(t, gateway.path)
  const { tmux } = terminal
  await tmux.until(/^ all /m)
  const last = /** @type {any} */ (gateway.snapshots.at(-1))
  gateway.send({ ...last, totals: { memory: null } })
  const screen = await assertRestored(t, terminal, 'exit 1')
  t.match(screen, /TypeError/)
})

t.test('signals quit like the key q', async t => {
  const gateway = await mock(t)
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) {
    const file = join(tempDir(t), 'pid')
    const terminal = await Tmux.shell(t)
    const { tmux } = terminal
    const command = `echo $$ >${file}; exec ${process.execPath} ${bin} dashboard ${gateway.path}`
    await tmux.enter(`sh -c '${command}'; echo exit $?`)
    await tmux.until(/^ all /m)
    process.kill(Number(await readFile(file, 'utf8')), signal)
    await assertRestored(t, terminal, `exit ${EXIT_CODES.quit}`)
  }
})

t.test('finds the gateway on this machine, or lists several', async t => {
  const runtime = tempDir(t)
  const env = { XDG_RUNTIME_DIR: runtime, TMPDIR: runtime }
  t.match(await run(['--once'], env), {
    code: 1,
    out: '',
    err: /no gateway of this user is running on this machine/,
  })
  const path = (/** @type {number} */ port) =>
    /** @type {string} */ (socketPath('auto', port, { runtimeDir: runtime, temporary: runtime }))
  await mkdir(join(runtime, 'halley'), { mode: 0o700 })
  const first = await mock(t, {}, path(8000))
  const { tmux } = await open(t, '', { env })
  await tmux.until(/^ all .*20,000/m)
  const second = await mock(t, { connections: 5000 }, path(9000))
  t.match(await run(['--once'], env), {
    code: 1,
    err: /several gateways are running:\n {2}npx halley-gateway dashboard 8000 .*\n {2}npx halley-gateway dashboard 9000/,
  })
  t.match(await run(['--once', '7000'], env), {
    code: 1,
    err: /no gateway listens on port 7000; running gateways:\n/,
  })
  const once = run(['--once', '9000'], env)
  await second.until(({ connections }) => connections > 0)
  second.send(mockSnapshots({ seconds: 1, connections: 5000 })[0])
  const { code, out } = await once
  t.equal(code, 0)
  t.match(out, /Halley 0\.1\.0[\s\S]*\n all /)
  const ascii = run(['--once', '9000', '--ascii'], env)
  await second.until(({ connections }) => connections > 0)
  second.send(mockSnapshots({ seconds: 1, connections: 5000 })[0])
  t.match((await ascii).out, /^[\n -~]+$/, 'only ASCII')
  t.ok(first)
})

t.test('without a terminal it prints one line', async t => {
  t.same(await run(['/nowhere.sock']), {
    code: 1,
    out: '',
    err: 'halley dashboard: standard output is not a terminal; use --once to print one screen as text\n',
  })
  const { tmux } = await open(t, '/nowhere.sock', { term: 'dumb' })
  await tmux.until(/not a terminal; use --once[\s\S]*exit 1/)
  for (const [code, args, err] of /** @type {[number, string, RegExp][]} */ ([
    [1, '/nowhere.sock', /^halley dashboard: \/nowhere\.sock: no gateway is listening\n$/],
    [2, 'http://127.0.0.1:1', /requires the admin key/],
    [2, 'localhost:8000', /is not a path; a URL starts with http/],
    [2, 'ftp://localhost', /is not a path; a URL starts with http/],
    [2, '--key x', /--key requires a URL/],
    [2, 'http://127.0.0.1:1 --ca ca.pem', /--ca requires an https URL/],
  ]))
    t.match(await run([...args.split(' '), '--once'], { HALLEY_ADMIN_KEY: '' }), { code, err }, args)
})

t.test('an unknown terminal is used like xterm and restored', async t => {
  const gateway = await mock(t)
  const terminal = await open(t, gateway.path, { term: 'nonsense' })
  const { tmux } = terminal
  t.match(await tmux.until(/^ all .*20,000[\s\S]* q quit$/m), /─ connections ─+ 20,000 {2}1\/6 ─/)
  t.equal(await tmux.display('alternate_on'), '1')
  t.match(await tmux.styled(), /\x1b\[[0-9;]*3[1-6]m/, 'in colours')
  await tmux.keys('Down')
  await tmux.until(/^▸ +0 /m)
  await tmux.keys('q')
  const screen = await assertRestored(t, terminal, `exit ${EXIT_CODES.quit}`)
  // A command with a long path wraps.
  t.match(
    screen.replaceAll('\n', ''),
    /what was before.{1,3}\S+node \S+halley\.js ?dashboard ?\S+; ?echo exit ?\$\?exit 0/,
    'no terminfo error is printed',
  )
})
