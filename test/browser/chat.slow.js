// The chat examples in a browser: two pages in one room, over the hooks and over the Express backend.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startExample } from '../examples/example.js'
import { startGateway } from '../gateway.js'
import { freePort } from '../ports.js'
import { RemotePage } from './remote-page.js'

const MESSAGES = `document.getElementById('messages').textContent`

/** @param {RemotePage} page @param {string} name @param {string} [room] */
async function enter(page, name, room = 'lobby') {
  await page.evaluate(`document.getElementById('name').value = ${JSON.stringify(name)}`)
  await page.evaluate(`document.getElementById('room').value = ${JSON.stringify(room)}`)
  await page.evaluate(`document.getElementById('enter').requestSubmit()`)
}

/** @param {RemotePage} page @param {string} text */
const says = (page, text) =>
  page.evaluate(
    `document.getElementById('text').value = ${JSON.stringify(text)}; document.getElementById('say').requestSubmit()`,
  )

/** @param {RemotePage} page @param {string} text */
const hears = (page, text) => page.until(`${MESSAGES}.includes(${JSON.stringify(text)})`)

/** @param {any} t @param {string} url of the page */
async function talk(t, url) {
  const [ann, ben] = [await RemotePage.open(t, url), await RemotePage.open(t, url)]
  await enter(ann, 'Ann')
  await hears(ann, 'You are in lobby.')
  await enter(ben, 'Ben')
  await hears(ann, 'Ben is here')
  await says(ben, 'hello <b>there</b>')
  await hears(ann, 'Benhello <b>there</b>')
  await says(ann, ' ')
  await ann.until(`document.getElementById('error').textContent.includes('1 to 500 characters')`)
  await ben.go('about:blank')
  await hears(ann, 'Ben has left')
  t.same(ann.faults, [])
}

t.test('by hooks', async t => {
  const { app } = await startExample(t, 'chat', {})
  await talk(t, app)
})

t.test('by an Express backend', async t => {
  const [port, api] = [await freePort(), await freePort()]
  const program = fileURLToPath(new URL('../../examples/chat-express/server.js', import.meta.url))
  const env = { ...process.env, PORT: String(port), GATEWAY: `http://127.0.0.1:${api}`, API_KEY: 'key' }
  const backend = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => backend.kill('SIGKILL'))
  await once(createInterface({ input: backend.stdout }), 'line')
  const file = new URL('../../examples/chat-express/halley.json', import.meta.url)
  const text = (await readFile(file, 'utf8')).replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`)
  const { client, channel } = JSON.parse(text)
  await startGateway(t, { http_server: { port: api }, client, channel })
  await talk(t, `http://127.0.0.1:${port}/`)
})
