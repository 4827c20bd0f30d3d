import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const PROGRAM = fileURLToPath(new URL('index.js', import.meta.url))

/** @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
const run = (args, env) => spawnSync(process.execPath, [PROGRAM, ...args], { env, encoding: 'utf8' })

t.test('--list prints three cells per supported platform', async t => {
  const { stdout, status } = run(['--list'])
  t.equal(status, 0)
  const platforms = ['13x20', '13x22', '13x24', '13x26', '12x20', '12x22', '12x24']
  t.strictSame(
    stdout.trim().split('\n'),
    platforms.flatMap(name => [name, `${name}-bare`, `${name}-slow`]),
  )
})

t.test('unknown cells and flags are refused', async t => {
  t.match(run(['14x24']), { status: 2, stderr: 'test:platforms: no cell 14x24 (--list lists them)\n' })
  t.match(run(['--nope']), { status: 2, stderr: /^test:platforms: Unknown option '--nope'.*--help/ })
})

t.test('without debootstrap the cells are skipped, and fail in CI', async t => {
  const reason = process.getuid?.() === 0 ? /debootstrap is not on the PATH/ : /need root/
  for (const [CI, word, counts] of /** @type {const} */ ([
    [undefined, 'Skipped', 'fail: 0, skip: 2'],
    ['true', 'FAILED', 'fail: 2, skip: 0'],
  ])) {
    const { stdout, status } = run(['13x24', '13x24-bare'], { PATH: '/nonexistent', CI })
    t.match(stdout, reason)
    t.match(stdout, new RegExp(`^${word}: `))
    t.match(stdout, `# { total: 2, pass: 0, ${counts} }`)
    t.equal(status, CI ? 1 : 0)
  }
})
