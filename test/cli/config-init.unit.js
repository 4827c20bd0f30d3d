import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { configureServer } from '../../src/config/profile.js'
import { directory } from '../config/support.js'
import { halley } from '../kit/cli.js'

t.test('config init writes random secrets, readable only by the owner; --force replaces a file', async t => {
  const dir = directory(t)
  const read = (/** @type {string} */ name) => readFileSync(join(dir.path, name), 'utf8')
  /** @type {string[]} */
  const secrets = []
  for (const name of ['config.yaml', 'b.json', 'c.yml']) {
    const { code, out, err } = await halley(['config', 'init', ...(name === 'config.yaml' ? [] : [name])], {
      cwd: dir.path,
    })
    t.same({ code, err }, { code: 0, err: '' })
    t.match(
      out,
      new RegExp(
        `^${name}: written.*\\n.*client\\.allowed_origins.*\\n  npx halley-gateway serve -c ${name}\\n$`,
      ),
    )
    t.equal(statSync(join(dir.path, name)).mode & 0o777, 0o600)
    const { config, warnings, profile } = configureServer({ file: name, cwd: dir.path })
    t.same({ profile, warnings }, { profile: 'configured', warnings: [] })
    for (const secret of [config.client.token.hmac_secret_key, config.http_api.key, config.admin.password]) {
      t.match(secret, /^[\da-f]{64}$/)
      secrets.push(secret)
    }
  }
  t.equal(new Set(secrets).size, 9, 'each secret is new')

  const before = read('config.yaml')
  t.same(await halley(['config', 'init'], { cwd: dir.path }), {
    code: 1,
    out: '',
    err: 'halley: config.yaml: already exists; use --force to replace it and its secrets\n',
  })
  t.equal(read('config.yaml'), before)
  chmodSync(join(dir.path, 'config.yaml'), 0o644)
  t.match(await halley(['config', 'init', '--force'], { cwd: dir.path }), { code: 0, err: '' })
  t.not(read('config.yaml'), before)
  t.equal(statSync(join(dir.path, 'config.yaml')).mode & 0o777, 0o600)
  t.same(readdirSync(dir.path).sort(), ['b.json', 'c.yml', 'config.yaml'])

  t.match(await halley(['config', 'init', 'none/c.json'], { cwd: dir.path }), {
    code: 1,
    err: 'halley: none/c.json: no such directory\n',
  })
  t.match(await halley(['config', 'init', 'c.toml'], { cwd: dir.path }), {
    code: 2,
    err: /config init: c\.toml: the file name must end with \.json, \.yaml or \.yml/,
  })
})

t.test('config init accepts values as flags', async t => {
  const dir = directory(t)
  const flags =
    '--yes --port 9000 --origin https://a.example --origin http://*.b.example:3000 ' +
    '--transport sse,poll --transport http_stream --redis-address redis://10.0.0.5:6380/1'
  for (const name of ['a.yaml', 'a.json']) {
    const { code, out } = await halley(['config', 'init', name, ...flags.split(' ')], { cwd: dir.path })
    t.equal(code, 0)
    t.notMatch(out, 'allowed_origins', 'they are known')
    const { config, warnings } = configureServer({ file: name, cwd: dir.path })
    t.same(warnings, [])
    t.match(config, {
      http_server: { port: 9000 },
      client: { allowed_origins: ['https://a.example', 'http://*.b.example:3000'] },
      engine: { type: 'redis', redis: { address: ['redis://10.0.0.5:6380/1'] } },
      sse: { enabled: true },
      poll: { enabled: true },
      http_stream: { enabled: true },
      uni_sse: { enabled: false },
    })
  }
  t.match(readFileSync(join(dir.path, 'a.yaml'), 'utf8'), /^ +# Your backend signs client tokens/m)
  for (const [line, message] of /** @type {[string, RegExp][]} */ ([
    ['--port 0', /--port 0: is not a port number \(1 to 65535\)/],
    ['--port x', /--port x: is not a port/],
    ['--origin example.com', /--origin example\.com: is not an origin such as/],
    ['--origin https://example.com/', /is not an origin/],
    ['--transport ses', /--transport ses: is not a transport; did you mean sse\? \(http_stream, /],
    ['--engine nats', /--engine nats: is not an engine: memory or redis/],
    ['--engine memory --redis-address redis://x', /--redis-address requires --engine redis/],
    ['--redis-address http://x', /--redis-address http:\/\/x: has the unknown scheme/],
  ])) {
    const { code, out, err } = await halley(['config', 'init', 'x.yaml', ...line.split(' ')], {
      cwd: dir.path,
    })
    t.same({ code, out }, { code: 2, out: '' }, line)
    t.match(err, message)
  }
  t.same(readdirSync(dir.path).sort(), ['a.json', 'a.yaml'])
})
