// The admin page itself, in a real browser, over a real gateway.

import t from 'tap'
import { anonymous, history, open, tokenClient, user } from '../clients/session/support.js'
import { needsChromium } from '../kit/browser/browser.js'
import { RemotePage } from '../kit/browser/remote-page.js'
import { startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'

needsChromium(t)

const KEY = 'the admin key of the tests'
const NAUGHTY = '<img src=x onerror=alert(1)>'

/**
 * @param {any} t
 * @param {object} [config]
 */
const start = (t, config = {}) =>
  startGateway(t, {
    admin: { password: KEY },
    client: tokenClient({ allow_anonymous_connect_without_token: true }),
    channel: { without_namespace: open, namespaces: [{ name: 'his', ...open, ...history }] },
    ...config,
  })

/**
 * @param {string} id
 * @param {string} text
 */
const shows = (id, text) => `document.getElementById('${id}').textContent.includes(${JSON.stringify(text)})`

/** @param {string} id */
const visible = id => `document.getElementById('${id}').offsetParent !== null`

/** @param {string} id of a table's place @param {string} text in one of its rows */
const rowWith = (id, text) =>
  `[...document.querySelectorAll('#${id} tbody tr')].find(row => row.textContent.includes(${JSON.stringify(text)}))`

/** A number of the table of workers, of all of them together. @param {string} column */
const sumOf = column => `(() => {
  const at = [...document.querySelectorAll('#workers th')].findIndex(head => head.textContent === '${column}')
  return [...document.querySelectorAll('#workers tbody tr')]
    .reduce((sum, row) => sum + Number(row.children[at].textContent.replace(/[^0-9.]/g, '')), 0)
})()`

/** How many of the charts have something on them. */
const DRAWN = `[...document.querySelectorAll('#charts canvas')].filter(canvas => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
  return data.some(byte => byte !== 0)
}).length`

/**
 * @param {RemotePage} page
 * @param {string} form
 * @param {Record<string, string>} values by id
 */
const submit = (page, form, values) =>
  page.evaluate(`(() => {
    for (const [id, value] of Object.entries(${JSON.stringify(values)})) {
      const field = document.getElementById(id)
      field.value = value
      field.dispatchEvent(new Event('input'))
      field.dispatchEvent(new Event('change'))
    }
    document.getElementById('${form}').requestSubmit()
  })()`)

/**
 * @param {RemotePage} page
 * @param {string} [key]
 */
const logIn = (page, key = KEY) => submit(page, 'login-form', { 'login-key': key })

/** @param {RemotePage} page @param {string} tab */
const go = (page, tab) => page.evaluate(`document.querySelector('#tabs [href="#${tab}"]').click()`)

t.test('an operator logs in, watches, publishes and disconnects', async t => {
  const gateway = await start(t)
  const page = await RemotePage.open(t, `${gateway.url}/admin`)
  await page.until(visible('login'))
  t.notOk(await page.evaluate(visible('signed-in')))

  await logIn(page, 'a guess')
  await page.until(shows('login-fault', 'Not logged in: wrong key.'))
  t.match(page.errors.splice(0), [/401.*\/admin\/api\/login/], 'what the browser says of the guess')
  await logIn(page)
  await page.until(`${visible('signed-in')} && ${shows('link-state', 'live')}`)
  t.equal(await page.evaluate(`document.getElementById('login-key').value`), '')

  t.test('what the gateway does is shown as it happens', async t => {
    await page.until(`document.querySelectorAll('#workers tbody tr').length === 2`)
    await page.until(shows('node-facts', 'memory engine'))
    await page.until(`${DRAWN} === document.querySelectorAll('#charts figure').length && ${DRAWN} >= 6`)
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'it fits the window')
    t.equal(await page.evaluate(sumOf('Clients')), 0)
    const clients = await Promise.all([anonymous(t, gateway), anonymous(t, gateway), anonymous(t, gateway)])
    await page.until(`${sumOf('Clients')} === 3`)
    await clients[0].close()
    await page.until(`${sumOf('Clients')} === 2`)
    await page.until(shows('events', 'is listening'))
    const before = await page.text('node-facts')
    await page.until(`document.getElementById('node-facts').textContent !== ${JSON.stringify(before)}`)
  })

  t.test('names of channels and users are texts', async t => {
    const client = await user(t, gateway, { sub: NAUGHTY })
    await client.subscribe(NAUGHTY)
    await go(page, 'channels')
    await page.until(rowWith('channels', NAUGHTY))
    await page.evaluate(`${rowWith('channels', NAUGHTY)}.querySelectorAll('button')[1].click()`)
    await page.until(rowWith('present-rows', NAUGHTY))
    t.equal(await page.evaluate(`document.querySelectorAll('main img').length`), 0)
  })

  t.test('what is published arrives as it was written', async t => {
    const client = await anonymous(t, gateway)
    await client.subscribe('news')
    await go(page, 'channels')
    await submit(page, 'channels-form', { 'channels-pattern': 'new*' })
    await page.until(`${shows('channels-count', '1 channel')} && ${rowWith('channels', 'news')}`)
    await page.evaluate(`${rowWith('channels', 'news')}.querySelector('button').click()`)
    t.equal(await page.evaluate(`document.getElementById('publish-channel').value`), 'news')
    await submit(page, 'publish-form', { 'publish-data': '{"text": ' })
    await page.until(shows('publish-result', 'Not valid JSON'))
    const data = '{"text":"hello","id":12345678901234567890}'
    await submit(page, 'publish-form', { 'publish-data': data })
    await page.until(shows('publish-result', 'Published to news.'))
    await client.push('pub')
    t.match(client.frames.at(-1), data)
    await submit(page, 'publish-form', { 'publish-channel': 'no:such', 'publish-data': '1' })
    await page.until(shows('publish-result', 'Not published: unknown channel'))
    t.match(page.errors.splice(0), [/404.*publish/])
  })

  t.test('history is read page by page, in both orders, and payloads are texts', async t => {
    const client = await anonymous(t, gateway)
    await client.subscribe('his:news')
    const payloads = ['{"id":12345678901234567890}', JSON.stringify({ text: NAUGHTY }), '"three"']
    await go(page, 'channels')
    for (const [at, data] of payloads.entries()) {
      await submit(page, 'publish-form', { 'publish-channel': 'his:news', 'publish-data': data })
      await page.until(shows('publish-result', `offset ${at + 1},`))
    }
    const offsets = `[...document.querySelectorAll('#history .offset')].map(({ textContent }) => textContent).join()`
    const reads = (/** @type {string} */ list) => page.until(`${offsets} === '${list}'`)
    await submit(page, 'channels-form', { 'channels-pattern': 'his:*' })
    await page.until(rowWith('channels', 'his:news'))
    await page.evaluate(
      `${rowWith('channels', 'his:news')}.querySelector('[aria-label="History: his:news"]').click()`,
    )
    await reads('3,2,1')
    t.same(
      await page.evaluate(
        `[...document.querySelectorAll('#history .payload')].map(({ textContent }) => textContent)`,
      ),
      [...payloads].reverse(),
    )
    t.equal(await page.evaluate(`document.querySelectorAll('main img').length`), 0)
    t.match(await page.text('history-count'), '3 shown · top offset 3 · epoch ')
    t.notOk(await page.evaluate(visible('history-more')))
    await submit(page, 'history-form', { 'history-limit': '2' })
    await reads('3,2')
    await page.evaluate(`document.getElementById('history-more').focus()`)
    await page.click('history-more')
    await reads('3,2,1')
    await page.until(`${visible('history-more')} === false && document.activeElement.id === 'history'`)
    await submit(page, 'history-form', { 'history-since': '3' })
    await reads('2,1')
    await submit(page, 'history-form', { 'history-since': '1', 'history-order': 'oldest' })
    await reads('2,3')
    await submit(page, 'history-form', { 'history-channel': 'news' })
    await page.until(shows('history-fault', 'The namespace of news keeps no history.'))
    await reads('')
    t.match(page.errors.splice(0), [/40\d.*history/])
  })

  t.test("a user's connection ends after it was asked whether it shall", async t => {
    const [first, second] = await Promise.all([
      user(t, gateway, { sub: 'anna' }),
      user(t, gateway, { sub: 'anna' }),
      anonymous(t, gateway),
    ])
    await go(page, 'users')
    await page.until(rowWith('users', first.connect.client))
    t.ok(await page.evaluate(`${rowWith('users', 'anonymous')} !== undefined`), 'everybody is there at once')
    t.ok(await page.evaluate(`document.getElementById('users-all').disabled`), 'and cannot be ended at once')
    await page.evaluate(`${rowWith('users', first.connect.client)}.querySelector('.user').click()`)
    await page.until(shows('users-count', '2 connections'))
    t.equal(await page.evaluate(`document.getElementById('users-user').value`), 'anna')
    const button = `${rowWith('users', first.connect.client)}.querySelector('.danger')`
    await page.evaluate(`${button}.click()`)
    t.ok(await page.evaluate(`document.getElementById('confirm').open`))
    await page.evaluate(`document.querySelector('#confirm [value=no]').click()`)
    await page.until(`!document.getElementById('confirm').open`)
    await submit(page, 'users-form', { 'users-user': 'anna' })
    await page.until(shows('users-count', '2 connections'))
    await page.evaluate(`${button}.click()`)
    await page.click('confirm-yes')
    t.equal((await first.closed).code, 3503)
    await page.until(shows('users-count', '1 connection'))
    t.notOk(second.ended)
    // Asked again right behind a no: that dialog's end is told late, and is no answer to this question.
    await page.evaluate(`new Promise(told => {
      const all = document.getElementById('users-all')
      all.click()
      document.querySelector('#confirm [value=no]').click()
      all.click()
      document.getElementById('confirm').addEventListener('close', told, { once: true })
    }).then(() => true)`)
    await page.click('confirm-yes')
    t.equal((await second.closed).code, 3503)
    await page.until(shows('users-count', '0 connections'))
  })

  t.test('every view fits a window and a phone', async t => {
    for (const width of [390, 1280]) {
      for (const tab of ['live', 'channels', 'users', 'nodes']) {
        await go(page, tab)
        await page.until(visible(`view-${tab}`))
        t.ok(await page.fits(width), `${tab}, ${width} pixels wide`)
      }
    }
  })

  t.test('nodes, and a worker that is restarted', async t => {
    await go(page, 'nodes')
    await page.until(shows('nodes-count', '1 node'))
    await go(page, 'live')
    const pid = `document.querySelector('#workers tbody tr').children[2].textContent`
    const before = await page.evaluate(pid)
    await page.evaluate(`document.querySelector('#workers [aria-label="Restart worker 0"]').click()`)
    t.match(await page.text('confirm-title'), 'Restart worker 0?')
    await page.click('confirm-yes')
    // A browser repeats a request whose connection ended with its worker: the gateway accepts it as done.
    await page.until(shows('workers-result', 'worker 0 restarts'))
    await page.until(`!['-', '${before}'].includes(${pid})`)
    await page.until(shows('link-state', 'live'))
    await page.click('gc-all')
    await page.click('confirm-yes')
    await page.until(shows('workers-result', 'every worker was asked'))
  })

  t.test('a reload keeps the login, and a log out ends it', async t => {
    await page.go(`${gateway.url}/admin`)
    await page.until(`${visible('signed-in')} && ${shows('link-state', 'live')}`)
    // The worker that has told the page before may have been the one that was restarted, and may have ended late.
    page.errors.splice(0)
    await page.click('logout')
    await page.until(visible('login'))
    await page.go(`${gateway.url}/admin`)
    await page.until(visible('login'))
    t.notOk(await page.evaluate(visible('signed-in')))
  })
  t.same(page.faults, [], 'no exceptions, and nothing that the policy forbids')
  t.same(page.errors, [])
})

t.test('the page says that the connection is lost, and goes on when the gateway is back', async t => {
  const port = await freePort()
  const http_server = { port }
  const gateway = await start(t, { http_server })
  const page = await RemotePage.open(t, `${gateway.url}/admin`)
  await logIn(page)
  await page.until(shows('link-state', 'live'))
  await gateway.stop()
  await page.until(`${shows('link-state', 'connection lost')} && ${visible('notice')}`)
  const again = await start(t, { http_server })
  await page.until(`${shows('link-state', 'live')} && !${visible('notice')}`)
  await page.until(rowWith('workers', String(again.workerPids[0])))
  await again.stop()

  await start(t, { http_server, admin: { password: 'another key' } })
  await page.until(visible('login'))
  t.notOk(await page.evaluate(visible('signed-in')), 'another key ends the login')
  await logIn(page, 'another key')
  await page.until(shows('link-state', 'live'))
  t.same(page.faults, [])
})
