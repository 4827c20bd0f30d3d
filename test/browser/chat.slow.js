// The chat examples in a browser: two pages in one room, over the hooks and over the Express backend; and the
// quickstart of README.md beside a gateway with the development profile.

import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startExample } from '../examples/example.js'
import { needsChromium } from '../kit/browser/browser.js'
import { RemotePage } from '../kit/browser/remote-page.js'
import { fetch } from '../kit/fetch.js'
import { startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'
import { startProgram } from '../kit/programs.js'

needsChromium(t)

const MESSAGES = `document.getElementById('messages').textContent`

const sends = (page, text) => page.fill({ text }, 'say')
const receives = (page, text) => page.until(`${MESSAGES}.includes(${JSON.stringify(text)})`)

/** @param {any} t @param {string} url of the page */
async function talk(t, url) {
  const [ann, ben] = [await RemotePage.open(t, url), await RemotePage.open(t, url)]
  await ann.fill({ name: 'Ann', room: 'lobby' }, 'enter')
  await receives(ann, 'You are in lobby.')
  await ben.fill({ name: 'Ben', room: 'lobby' }, 'enter')
  await receives(ben, 'You are in lobby.')
  await receives(ann, 'Ben is here')
  await sends(ben, 'hello <b>there</b>')
  await receives(ann, 'Benhello <b>there</b>')
  await sends(ann, ' ')
  await ann.until(`document.getElementById('error').textContent.includes('1 to 500 characters')`)
  await ben.go('about:blank')
  await receives(ann, 'Ben has left')
  t.same(ann.faults, [])
}

t.test('by hooks', async t => {
  const { app } = await startExample(t, 'chat', {})
  await talk(t, app)
})

t.test('by an Express backend', async t => {
  const [port, api] = [await freePort(), await freePort()]
  const program = fileURLToPath(new URL('../../examples/chat-express/server.js', import.meta.url))
  await startProgram(t, program, { PORT: `${port}`, GATEWAY: `http://127.0.0.1:${api}`, API_KEY: 'key' })
  const file = new URL('../../examples/chat-express/halley.json', import.meta.url)
  const text = (await readFile(file, 'utf8')).replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`)
  const { client, channel } = JSON.parse(text)
  await startGateway(t, { http_server: { port: api }, client, channel })
  await talk(t, `http://127.0.0.1:${port}/`)
})

t.test('the quickstart page works on its own port, with history, presence and its backend', async t => {
  // Options that the helper sets for other tests are left to the profile.
  const config = { workers: 1, client: { allowed_origins: undefined, ping_interval: undefined } }
  const gateway = await startGateway(t, config, { args: ['--dev'] })
  const program = fileURLToPath(new URL('../../examples/quickstart/server.mjs', import.meta.url))
  const env = { ...process.env, PORT: '0', GATEWAY: gateway.url, HALLEY_API_KEY: 'key' }
  const { child: backend, line } = await startProgram(t, program, env)
  const [url] = /** @type {string[]} */ (/http:\S+/.exec(line))
  t.match(url, /^http:\/\/localhost:\d+\/$/)

  const { port } = new URL(url)
  const taken = spawnSync(process.execPath, [program], { env: { ...env, PORT: port }, encoding: 'utf8' })
  t.equal(taken.stderr, `port ${port} is in use: set PORT to another one\n`)
  const keyless = spawnSync(process.execPath, [program], {
    env: { ...env, HALLEY_API_KEY: '' },
    encoding: 'utf8',
  })
  t.equal(keyless.stderr, 'HALLEY_API_KEY is not set: the gateway shows its key when it starts\n')

  const ann = await RemotePage.open(t, url)
  const here = n => `document.getElementById('here').textContent === '${n}'`
  await ann.until(here(1))
  await sends(ann, 'hello <b>there</b>')
  await receives(ann, ': hello <b>there</b>')
  const ben = await RemotePage.open(t, url)
  await receives(ben, ': hello <b>there</b>')
  await ann.until(here(2))
  await ben.fill({ name: 'Ben' })
  await sends(ben, 'here, too')
  await receives(ann, 'Ben: here, too')
  t.same([...ann.faults, ...ben.faults], [])
  await ben.go('about:blank')
  await ann.until(here(1))

  const say = body => fetch(`${url}say`, { method: 'POST', body })
  t.equal((await say('{"name":"x"}')).status, 400)
  t.equal((await say('x'.repeat(20_000))).status, 413)
  t.equal((await fetch(`${url}constructor`)).status, 404)
  const told = once(createInterface({ input: /** @type {any} */ (backend.stderr) }), 'line')
  await gateway.stop()
  t.equal((await say('{"name":"Ann","text":"anybody?"}')).status, 502)
  t.same(await told, [`no gateway is listening at ${gateway.url}`])
})
