// The demo page itself, in a real browser, over every transport that it offers.

import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { developmentProfile } from '../../src/config/profile.js'
import { needsChromium } from '../kit/browser/browser.js'
import { RemotePage } from '../kit/browser/remote-page.js'
import { startGateway } from '../kit/gateway.js'
import { listen } from '../kit/ports.js'
import { until } from '../kit/wait.js'

needsChromium(t)

const LABELS = {
  protobuf: 'WebSocket · Protobuf',
  'http-stream': 'HTTP streaming · JSON',
  sse: 'Server-sent events · JSON',
  poll: 'Long-poll · JSON',
  websocket: 'WebSocket · JSON',
}
const ROOM = `document.getElementById('room-log').textContent`

async function startDemo(t) {
  const { http_api, http_server, ...profile } = /** @type {any} */ (developmentProfile('key'))
  return startGateway(t, { ...profile, client: { ...profile.client, allowed_origins: ['*'] } })
}

const shows = (id, text) => `document.getElementById('${id}').textContent.includes(${JSON.stringify(text)})`

t.test('the demo page sends, receives and recovers each message once, over every transport', async t => {
  const gateway = await startDemo(t)
  const page = await RemotePage.open(t, gateway.url)
  await page.until(shows('link-state', 'connected'))
  const expected = []
  const publish = async text => {
    expected.push(text)
    await gateway.api('publish', { channel: 'demo:room', data: { text } })
  }
  const say = async text => {
    expected.push(text)
    await page.fill({ 'room-text': text }, 'room-form')
  }
  await page.until(shows('room-log', 'No messages yet.'))

  for (const [id, label] of Object.entries(LABELS)) {
    // The switch and the message race: it comes before, after, or out of the history.
    await Promise.all([page.click(`transport-${id}`), publish(`[${id} switch]`)])
    await page.until(
      `${shows('link-transport', label)} && ${shows('link-state', 'connected')} && ${shows('recovery-text', `Now over ${label}`)}`,
    )
    await page.until(shows('room-log', `[${id} switch]`))
    await publish(`[${id} hears]`)
    await page.until(shows('room-log', `[${id} hears]`))
    await say(`[${id} says]`)
    await page.until(shows('room-log', `[${id} says]`))
    await page.click('offline')
    await page.until(shows('link-state', 'disconnected'))
    await publish(`[${id} missed]`)
    await page.click('offline')
    await page.until(shows('room-log', `[${id} missed]recovered`))
    t.pass(label)
  }
  t.same((await page.evaluate(ROOM)).match(/\[[^\]]+\]/g), expected, 'in order, and none twice')
  t.same(page.faults, [], 'no exceptions, and nothing that the policy forbids')
})

t.test('a new tab sees the comets of the others, and each one goes with its tab', async t => {
  const gateway = await startDemo(t)
  const HINT = `document.getElementById('sky-hint').hidden`
  const press = (page, key) =>
    page.evaluate(
      `document.getElementById('sky').dispatchEvent(new KeyboardEvent('keydown', { key: '${key}' }))`,
    )
  const comets = async () =>
    (await gateway.api('map_read_state', { channel: 'pointers:sky', limit: -1 })).result.entries
  const [first, second] = [await RemotePage.open(t, gateway.url), await RemotePage.open(t, gateway.url)]
  for (const page of [first, second]) await page.until(shows('link-state', 'connected'))
  await first.fill({ 'room-name': 'Zoë 彗星 ☄️' })
  await press(first, 'ArrowLeft')
  await until(async () => (await comets()).length === 1)
  t.match(await comets(), [{ data: { x: 0.475, y: 0.5, name: 'Zoë 彗星 ☄️' } }])

  await second.click('transport-protobuf')
  await second.until(shows('link-transport', LABELS.protobuf))
  // Own comets alone do not hide the hint.
  for (let n = 0; n < 2; n++) await press(second, 'ArrowUp')
  await second.until(HINT)
  await until(async () => (await comets()).length === 2)

  // A new connection has a new key.
  const keys = (await comets()).map(({ key }) => key)
  for (const page of [first, second]) await page.click('transport-sse')
  for (const page of [first, second]) await page.until(shows('link-transport', LABELS.sse))
  await until(async () => {
    const now = await comets()
    return now.length === 2 && now.every(({ key }) => !keys.includes(key))
  })
  await second.go('about:blank')
  await until(async () => (await comets()).length === 1)
  t.same(first.faults, [])
})

t.test('the transport that was chosen survives a reload', async t => {
  const gateway = await startDemo(t)
  const page = await RemotePage.open(t, gateway.url)
  await page.until(shows('link-state', 'connected'))
  await page.click('transport-sse')
  await page.until(shows('link-transport', LABELS.sse))
  await page.go(await page.evaluate('location.href'))
  await page.until(`${shows('link-state', 'connected')} && ${shows('link-transport', LABELS.sse)}`)
  t.ok(await page.evaluate(`document.getElementById('transport-sse').checked`))
  t.same(page.faults, [])
})

t.test('the page fits a window and a phone, and its links lead somewhere', async t => {
  const gateway = await startDemo(t)
  const page = await RemotePage.open(t, gateway.url)
  await page.until(`${shows('link-state', 'connected')} && document.querySelector('#workers td') !== null`)
  for (const width of [390, 1280]) t.ok(await page.fits(width), `${width} pixels wide`)
  const links = await page.evaluate(
    `[...document.querySelectorAll('.links a')].filter(link => link.offsetParent !== null).map(link => link.href)`,
  )
  t.ok(links.includes(`${gateway.url}/admin`))
  t.ok(links.includes(`${gateway.url}/demo/README.md`))
  for (const link of links) t.equal((await fetch(link)).status, 200, link)
  t.same(page.faults, [])

  t.test('the page of its own that it offers works on another port', async t => {
    const html = await page.evaluate(`document.querySelector('#own-commands code').textContent`)
    const server = http.createServer((_, res) => res.setHeader('Content-Type', 'text/html').end(html))
    const port = await listen(t, server)
    const own = await RemotePage.open(t, `http://127.0.0.1:${port}/`)
    await own.until(`globalThis.Centrifuge !== undefined`)
    // The page shows what comes after it has subscribed, and says nothing of when that is.
    const heard = own.until(`document.body.textContent.includes('hello')`).then(() => true)
    await until(async () => {
      await gateway.api('publish', { channel: 'demo:room', data: { text: 'hello' } })
      return Promise.race([heard, sleep(500)])
    })
    t.same(own.faults, [])
  })
})

t.test('a plain EventSource on the page receives messages of the room', async t => {
  const gateway = await startDemo(t)
  const page = await RemotePage.open(t, gateway.url)
  await page.click('listen-toggle')
  await page.until(shows('listen-text', 'event'))
  // The next event takes the place of the last one, and the page may begin to look only after the first message has
  // come and gone.
  const heard = page.until(shows('listen-text', 'demo:room at ')).then(() => true)
  await until(async () => {
    await gateway.api('publish', { channel: 'demo:room', data: { text: 'hello' } })
    return Promise.race([heard, sleep(500)])
  })
  await page.click('listen-toggle')
  t.equal(await page.text('listen-text'), 'Closed.')
  t.same(page.faults, [])
})
