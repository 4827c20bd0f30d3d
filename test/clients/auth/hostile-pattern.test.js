// Patterns of the configuration meet text that clients choose: none of it may keep a worker busy. Each case runs in a
// process of its own, which a backtracking engine would keep busy for years.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

const run = promisify(execFile)
const TIMEOUT = 20_000

const cases = {
  'channel_regex and the name of a channel': `
    const { loadConfig } = await import('./src/config/load.js')
    const { ChannelRules } = await import('./src/clients/auth/channel-rules.js')
    const base = { channel: { without_namespace: { channel_regex: '^(a+)+$' } } }
    const rules = new ChannelRules(loadConfig({ base }).config)
    const channel = 'a'.repeat(60)
    const namespace = rules.resolve(channel)
    console.log(rules.checkName(channel, namespace), rules.checkName(channel + '!', namespace))`,
  'issuer_regex and the issuer of a token': `
    const { loadConfig } = await import('./src/config/load.js')
    const { Tokens } = await import('./src/clients/auth/tokens.js')
    const { makeToken } = await import('./test/clients/auth/jwt.js')
    const base = { client: { token: { hmac_secret_key: 'secret', issuer_regex: '^(a+)+$' } } }
    const tokens = new Tokens(loadConfig({ base }).config)
    const accepted = iss => {
      try { return tokens.connect(makeToken({ sub: '1', iss }, 'secret')).user === '1' } catch { return false }
    }
    console.log(accepted('a'.repeat(60)), accepted('a'.repeat(60) + '!'))`,
  'audience_regex and the audiences of a token': `
    const { loadConfig } = await import('./src/config/load.js')
    const { Tokens } = await import('./src/clients/auth/tokens.js')
    const { makeToken } = await import('./test/clients/auth/jwt.js')
    const base = { client: { token: { hmac_secret_key: 'secret', audience_regex: '^(a|aa)+$' } } }
    const tokens = new Tokens(loadConfig({ base }).config)
    const accepted = aud => {
      try { return tokens.connect(makeToken({ sub: '1', aud }, 'secret')).user === '1' } catch { return false }
    }
    console.log(accepted(['a'.repeat(60)]), accepted(Array(100).fill('a'.repeat(60) + '!')))`,
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
