import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { portOwner } from '../../src/processes/primary/address.js'
import { directory } from '../config/support.js'
import { halley, spawnHalley } from '../kit/cli.js'

/** @param {string} line @param {Parameters<typeof halley>[1]} [options] */
const run = (line, options) => halley(line.split(' '), options)

t.test('a command run as a process has the same output and exit code', async t => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  t.same(await spawnHalley(['--version']), { code: 0, out: `halley ${version}\n`, err: '' })
  for (const args of [
    ['serve', '--help'],
    ['config', 'check'],
    ['config', 'doc'],
    ['config', 'chek'],
    ['token', '-u', '1'],
    ['serve', '--port', '70000'],
  ])
    t.same(await spawnHalley(args), await halley(args), args.join(' '))
})

t.test('--version and --help work for every command', async t => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const groups = 'init check defaults doc'.split(' ').map(name => `config ${name}`)
  const commands = ['', ...'serve dashboard report token subtoken config'.split(' '), ...groups]
  await Promise.all(
    commands.map(async name => {
      const words = name.split(' ').filter(word => word !== '')
      for (const flag of ['--version', '-V']) {
        const { code, out, err } = await halley([...words, flag])
        t.same([code, out, err], [0, `halley ${version}\n`, ''], `${name} ${flag}`)
      }
      const help = await halley([...words, '--help'])
      t.equal(help.code, 0)
      t.equal(help.err, '')
      t.match(help.out, new RegExp(`^Usage: npx halley-gateway ${name}`))
      t.match(help.out, 'Examples:')
      t.same(await halley([...words, '-h']), help)
      t.same(await halley(['help', ...words]), help)
    }),
  )
})

t.test('an invalid command line is a one-line error with a suggestion and exit code 2', async t => {
  for (const [line, message] of /** @type {[string, RegExp][]} */ ([
    ['srve', /unknown command "srve"; did you mean serve\?/],
    ['nonsense', /unknown command "nonsense" \(see npx halley-gateway --help\)/],
    ['serve --nonsense', /serve: unknown flag --nonsense /],
    ['config chek', /unknown command "config chek"; did you mean config check\?/],
    ['config', /no command given; use one of init, check, defaults, doc/],
    ['serve --prot 1', /serve: unknown flag --prot; did you mean --port\?/],
    ['--worker=2', /serve: unknown flag --worker; did you mean --workers\?/],
    ['serve -x', /serve: unknown flag -x /],
    ['serve --port', /--port requires a value/],
    ['serve --config --port 1', /--config requires a value/],
    ['serve --no-dashboard=yes', /--no-dashboard takes no value/],
    ['serve config.json', /unexpected argument "config.json"/],
    ['subtoken -u 1', /--channel is required/],
    ['restart 1 --worker x', /restart: --worker must be the index of a worker, starting at 0/],
    ['restart 1 --worker=', /--worker must be the index/],
  ])) {
    const { code, out, err } = await halley(line.split(' '))
    t.equal(code, 2, line)
    t.equal(out, '')
    t.match(err, message)
    t.equal(err.trim().split('\n').length, 1)
  }
})

t.test('serve refuses an invalid configuration, one line per error, exit code 1', async t => {
  const dir = directory(t)
  const file = dir.write('bad.json', { http_server: { prot: 1, address: '127.0.0.1' }, workers: 'x' })
  t.same(await run(`serve -c ${file}`), {
    code: 1,
    out: '',
    err:
      'halley: http_server.prot: unknown key; did you mean http_server.port?\n' +
      'halley: workers: "x" is not a whole number\n',
  })
  const open = await run('-c open.yaml', { cwd: dir.path, env: {} })
  t.match(open, { code: 1, err: 'halley: open.yaml: no such file\n' })
  dir.write('open.yaml', 'http_server: {port: 1}\n')
  const exposed = await run('-c open.yaml', { cwd: dir.path })
  t.equal(exposed.code, 1)
  t.same(
    exposed.err.split('\n').map(line => line.split(': ')[1]),
    [
      'client.token.hmac_secret_key',
      'http_api.key',
      'client.allowed_origins',
      'the development profile is off because of the file open.yaml; --dev applies it below your settings',
      undefined,
    ],
  )
  const kept = await run('config check --dev -c open.yaml', { cwd: dir.path })
  t.same(kept, { code: 0, out: 'open.yaml: valid\n', err: '' })
  const flag = await run('serve --port 70000')
  t.match(flag, { code: 1, err: 'halley: --port: 70000 is out of range; it must be at most 65535\n' })
  const variable = await run('serve', { env: { HALLEY_HTTP_SERVER_PROT: '1' } })
  t.match(variable.err, 'did you mean HALLEY_HTTP_SERVER_PORT')
})

t.test('config check', async t => {
  const dir = directory(t)
  t.same(await run('config check'), { code: 0, out: 'the development profile: valid\n', err: '' })
  const good = dir.write('good.yaml', 'http_server:\n  address: localhost\nwebtransport:\n  enabled: true\n')
  t.same(await run(`config check -c ${good}`), {
    code: 0,
    out: `warning: webtransport.enabled: Centrifugo key that Halley does not support yet; it is ignored\n${good}: valid, 1 warning\n`,
    err: '',
  })
  const bad = dir.write('bad.json', { webtransport: { enabled: true }, workers: -1 })
  t.same(await run(`config check --config ${bad}`), {
    code: 1,
    out: 'warning: webtransport.enabled: Centrifugo key that Halley does not support yet; it is ignored\n',
    err: 'halley: workers: -1 is out of range; it must be at least 0\n',
  })
})

t.test('config check warns about short secrets and refuses common ones', async t => {
  const dir = directory(t)
  const file = dir.write('a.json', {
    http_server: { address: '127.0.0.1' },
    client: { token: { hmac_secret_key: 'secret' } },
    http_api: { key: 'a long random text' },
  })
  t.same(await run(`config check -c ${file}`), {
    code: 1,
    out:
      'warning: client.token.hmac_secret_key: is only 6 bytes long; use 32 random bytes (npx halley-gateway config init generates them)\n' +
      'warning: http_api.key: is only 18 bytes long; use 32 random bytes (npx halley-gateway config init generates them)\n',
    err: 'halley: http_api.key: is a well-known value; replace it with a random one (npx halley-gateway config init generates them)\n',
  })
})

t.test('config defaults prints files with the defaults', async t => {
  const dir = directory(t)
  const [json, yaml] = await Promise.all([run('config defaults'), run('config defaults --yaml')])
  t.equal(json.code, 0)
  t.same(loadConfig({ file: dir.write('a.json', json.out) }), loadConfig())
  t.same(loadConfig({ file: dir.write('a.yaml', yaml.out) }), loadConfig())
  t.equal(JSON.parse(json.out).client.ping_interval, '25s', 'durations are strings with units')
})

t.test('config doc prints docs/config.md', async t => {
  const { out } = await run('config doc')
  t.ok(out === readFileSync(new URL('../../docs/config.md', import.meta.url), 'utf8'))
})

/**
 * Checks the signature and gives the claims.
 * @param {import('tap').Test} t
 * @param {string} text
 * @param {string} secret
 */
function claims(t, text, secret) {
  t.match(text, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  const [head, body, signature] = text.trim().split('.')
  t.equal(createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url'), signature)
  t.same(JSON.parse(Buffer.from(head, 'base64url').toString()), { alg: 'HS256', typ: 'JWT' })
  return JSON.parse(Buffer.from(body, 'base64url').toString())
}

t.test('tokens are signed with the secret of the configuration', async t => {
  const dir = directory(t)
  const file = dir.write('a.json', {
    client: { token: { hmac_secret_key: 'key-1', audience: 'aud', issuer: 'iss' } },
  })
  const before = Math.floor(Date.now() / 1000)
  const plain = await run(`token -c ${file} -u 42`)
  t.equal(plain.code, 0)
  const a = claims(t, plain.out, 'key-1')
  t.match(a, { sub: '42', aud: 'aud', iss: 'iss' })
  t.equal(a.exp - a.iat, 24 * 3600)
  t.ok(a.iat >= before && a.iat <= before + 60)

  const flags = '--user a"b --ttl 90m --info {"name":"Ann"} --channel x,y --channel z'.split(' ')
  const full = await halley(['token', '--config', file, ...flags])
  const b = claims(t, full.out, 'key-1')
  t.match(b, { sub: 'a"b', info: { name: 'Ann' }, channels: ['x,y', 'z'] })
  t.equal(b.exp - b.iat, 5400)

  const env = { HALLEY_CLIENT_TOKEN_HMAC_SECRET_KEY: 'key-2', HALLEY_CLIENT_TOKEN_USER_ID_CLAIM: 'uid' }
  const anonymous = claims(t, (await run('token --ttl 0', { env })).out, 'key-2')
  t.same(Object.keys(anonymous), ['iat'], 'no user, no expiry')
  t.match(claims(t, (await run('token -u x', { env })).out, 'key-2'), { uid: 'x' })
})

t.test('subscription tokens use their own secret if configured', async t => {
  const dir = directory(t)
  const args = ['subtoken', '-u', '42', '--channel', '$news', '-t', '60', '-c']
  const one = dir.write('one.json', { client: { token: { hmac_secret_key: 'key-1' } } })
  const two = dir.write('two.json', {
    client: {
      token: { hmac_secret_key: 'key-1' },
      subscription_token: { enabled: true, hmac_secret_key: 'key-2' },
    },
  })
  const a = claims(t, (await halley([...args, one])).out, 'key-1')
  t.match(a, { sub: '42', channel: '$news' })
  t.equal(a.exp - a.iat, 60)
  t.match(claims(t, (await halley([...args, two])).out, 'key-2'), { sub: '42', channel: '$news' })
})

t.test('errors of token commands are one line', async t => {
  const dir = directory(t)
  const env = { HALLEY_CLIENT_TOKEN_HMAC_SECRET_KEY: 'k' }
  t.match(await run('token -u 1'), { code: 1, err: /client\.token\.hmac_secret_key: not set/ })
  t.match(await run('token --ttl 5x', { env }), { code: 2, err: /--ttl: "5x" is not a duration/ })
  for (const info of ['[1]', '{'])
    t.match(await run(`token --info ${info}`, { env }), { code: 2, err: /--info must be a JSON object/ })
  const jwks = dir.write('j.json', {
    client: { token: { hmac_secret_key: 'x', jwks_public_endpoint: 'https://x/' } },
  })
  t.match(await run(`token -c ${jwks}`), {
    code: 1,
    err: /jwks_public_endpoint: only tokens signed with/,
  })
})

t.test('the error for a used port names its process', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (other.address())
  const { code, err } = await spawnHalley(['serve', '--workers', '1', '--port', String(port)])
  t.equal(code, 1)
  t.match(
    err,
    new RegExp(
      `^halley: cannot listen on 127.0.0.1:${port}: EADDRINUSE: port in use(?: by process ${process.pid} \\([^\\n]+\\))?; ` +
        'set another port with --port or http_server\\.port, or watch a running gateway with `npm run dashboard`\\n$',
    ),
    'a search that takes too long on a busy machine names no process',
  )
  t.match(await portOwner(port, 60_000), new RegExp(`^process ${process.pid} \\(.+\\)$`))
})

t.test('output of commands is escaped for a terminal', async t => {
  const hostile = 'a\x1b[2Jb\x9b2Jc\u202ed\x7f'
  const escaped = String.raw`a\u001b[2Jb\u009b2Jc\u202ed\u007f`
  const unknown = await run(hostile)
  t.equal(unknown.code, 2)
  t.match(unknown.err, `unknown command "${escaped}"`)
  const folder = directory(t)
  const check = ['config', 'check', '-c']
  check.push(folder.write(`${hostile}.json`, { http_server: { address: '127.0.0.1' } }))
  const shown = await halley(check, { terminal: true })
  t.match(shown, { code: 0, out: `${folder.path}/${escaped}.json: valid\n` })
  const kept = await halley(check)
  t.match(
    kept,
    { code: 0, out: `${folder.path}/${hostile}.json: valid\n` },
    'unescaped if standard output is not a terminal',
  )
  const fault = await halley(['config', 'check', '-c', `${folder.path}/${hostile}`])
  t.ok(fault.err.includes(escaped), fault.err)
  t.notMatch(fault.err, /[\x1b\x7f-\x9f\u202e]/)
})
