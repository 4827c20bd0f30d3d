// Configured patterns match client text in linear time. Each case runs in a new process, which a backtracking engine
// would keep busy for years.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

const run = promisify(execFile)
const TIMEOUT = 20_000

const accepts = `
    const { loadConfig } = await import('./src/config/load.js')
    const { Tokens } = await import('./src/clients/auth/tokens.js')
    const { makeToken } = await import('./test/clients/auth/jwt.js')
    const accepts = (settings, claims) => {
      const token = { hmac_secret_key: 'secret', ...settings }
      const tokens = new Tokens(loadConfig({ base: { client: { token } } }).config)
      try { return tokens.connect(makeToken({ sub: '1', ...claims }, 'secret')).user === '1' } catch { return false }
    }
    const long = 'a'.repeat(60)`

const cases = {
  'channel_regex and the name of a channel': `
    const { loadConfig } = await import('./src/config/load.js')
    const { ChannelRules } = await import('./src/clients/auth/channel-rules.js')
    const base = { channel: { without_namespace: { channel_regex: '^(a+)+$' } } }
    const rules = new ChannelRules(loadConfig({ base }).config)
    const channel = 'a'.repeat(60)
    const namespace = rules.resolve(channel)
    console.log(rules.checkName(channel, namespace), rules.checkName(channel + '!', namespace))`,
  'issuer_regex and the issuer of a token': `${accepts}
    const settings = { issuer_regex: '^(a+)+$' }
    console.log(accepts(settings, { iss: long }), accepts(settings, { iss: long + '!' }))`,
  'audience_regex and the audiences of a token': `${accepts}
    const settings = { audience_regex: '^(a|aa)+$' }
    console.log(accepts(settings, { aud: [long] }), accepts(settings, { aud: Array(100).fill(long + '!') }))`,
  'a duration of the configuration': `
    const { parseDuration } = await import('./src/config/values.js')
    const reads = text => {
      try { return parseDuration(text) > 0 } catch { return false }
    }
    console.log(reads('0'.repeat(200_000) + '1s'), reads('1'.repeat(200_000) + 'x'))`,
  'a pattern of the configuration that is large when it is written out': `
    const { loadConfig } = await import('./src/config/load.js')
    const loads = channel_regex => {
      try { return Boolean(loadConfig({ base: { channel: { without_namespace: { channel_regex } } } })) }
      catch { return false }
    }
    console.log(loads('^a{1,1000}$'), loads('((((a{1,100}){1,100}){1,100}){1,100}){1,100}'))`,
  'allowed_origins and an Origin header': `
    const { createOriginCheck } = await import('./src/clients/transport/origin.js')
    const allows = createOriginCheck(['https://*a*a*a*a*a*a*a*a*a.example.com'])
    const host = 'a'.repeat(400)
    console.log(allows('https://' + host + '.example.com'), allows('https://' + host + '.example.org'))`,
  'a glob of the server API and the name of a channel': `
    const { compileGlob } = await import('./src/config/glob.js')
    const glob = compileGlob('*a'.repeat(12))
    console.log(glob.test('a'.repeat(250)), glob.test('a'.repeat(250) + '!'))`,
}

for (const [name, script] of Object.entries(cases)) {
  t.test(name, async t => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], {
      cwd: new URL('../../..', import.meta.url),
      timeout: TIMEOUT,
    })
    t.equal(stdout.trim(), 'true false')
  })
}
