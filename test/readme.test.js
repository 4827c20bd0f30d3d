import { createHmac } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { COMMAND } from '../src/base/version.js'
import { Tokens } from '../src/clients/auth/tokens.js'
import { DEFAULTS, initialText } from '../src/config/initial.js'
import { loadConfig } from '../src/config/load.js'
import { configureServer } from '../src/config/profile.js'
import { directory } from './config/support.js'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

/**
 * @param {string} language
 * @returns {string[]} fenced blocks
 */
const blocks = language =>
  [...readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , text]) => text)

t.test('the production example of the README is the output of config init', async t => {
  const [shown] = blocks('yaml')
  t.equal(
    shown,
    initialText(DEFAULTS, () => '32 random bytes'),
  )
  t.throws(
    () => configureServer({ file: directory(t).write('config.yaml', shown) }),
    /** @type {any} */ ({
      faults: ['client.token.hmac_secret_key', 'http_api.key', 'admin.password'].map(
        key => new RegExp(`^${key}: `),
      ),
    }),
  )
})

t.test('tokens of the README example are valid', async t => {
  const [source] = blocks('js').filter(text => text.includes('connectionToken'))
  const body = source.replace(/^import .*$/m, '').replace('export ', '')
  const connectionToken = new Function('createHmac', `${body}; return connectionToken`)(createHmac)
  const { config } = loadConfig({ base: { client: { token: { hmac_secret_key: 'secret' } } } })
  const claims = await new Tokens(config).connect(connectionToken('42', 'secret'))
  t.equal(claims.user, '42')
})

t.test('its links to pages are valid', async t => {
  for (const [, path] of readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
    t.ok(existsSync(new URL(`../${path}`, import.meta.url)), path)
  }
})

t.test('all commands use the package name', async t => {
  const root = new URL('../', import.meta.url)
  const { name, bin } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
  t.equal(COMMAND, `npx ${name}`)
  t.equal(bin[name], 'bin/halley.js', 'npx runs the command with the name of the package')
  const folders = ['docs', 'examples'].flatMap(folder =>
    readdirSync(new URL(folder, root), { recursive: true }).map(file => `${folder}/${file}`),
  )
  const texts = ['README.md', 'SECURITY.md', ...folders].filter(file =>
    /\.(?:md|js|ts|yaml|json|html)$/.test(file),
  )
  t.ok(texts.length > 30)
  const words = 'serve|dashboard|reload|restart|report|doctor|token|subtoken|config|fleet|--\\w+'
  const other = new RegExp(
    `(?:npx|sudo) halley\\b(?!-gateway)|sudo npx|(?<![\\w/.:-])halley (?:${words})(?![\\w-])`,
  )
  for (const file of texts) {
    const lines = readFileSync(new URL(file, root), 'utf8').split('\n')
    // The fleet's view has this title.
    const wrong = lines.filter(line => other.test(line) && !/halley fleet {2}r-/.test(line))
    t.same(wrong, [], `${file} writes ${COMMAND}`)
  }
})

/** Top-level folders whose paths the guides name from the root of the repository. */
const PATHS = /`((?:src|test|dashboard|fleet|bench|bin|client|docs)\/[\w./-]*)`(?: `([#\w]+)\(\)`)?/g

for (const name of ['docs/architecture.md', 'CONTRIBUTING.md']) {
  t.test(`every path and function in ${name} exists`, async t => {
    const text = readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')
    const found = [...text.matchAll(PATHS)]
    t.ok(found.length > 5)
    for (const [, path, method] of found) {
      const url = new URL(`../${path}`, import.meta.url)
      t.ok(existsSync(url), path)
      if (method === undefined) continue
      const called = new RegExp(
        `^(?:(?: {2}(?:async )?|export (?:async )?function )${method}\\(|export const ${method} =)`,
        'm',
      )
      t.match(readFileSync(url, 'utf8'), called, `${path} has ${method}()`)
    }
    for (const [, path] of text.matchAll(/\]\((?!https?:)([^)#]+)(?:#[\w-]+)?\)/g))
      t.ok(existsSync(new URL(path, new URL(`../${name}`, import.meta.url))), path)
  })
}
