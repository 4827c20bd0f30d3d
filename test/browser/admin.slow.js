// The admin page itself, in a real browser, over a real gateway.

import t from 'tap'
import { anonymous, history, open, opened, token, tokenClient, user } from '../clients/session/support.js'
import { needsChromium } from '../kit/browser/browser.js'
import { RemotePage } from '../kit/browser/remote-page.js'
import { startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'

needsChromium(t)

const KEY = 'the admin key of the tests'
const NAUGHTY = '<img src=x onerror=alert(1)>'

const MAPS = [
  { name: 'board', ...open, subscription_type: 'map', map: { mode: 'persistent' } },
  { name: 'brief', ...open, subscription_type: 'map', map: { mode: 'ephemeral', key_ttl: '1h' } },
]

const start = (t, config = {}) =>
  startGateway(t, {
    admin: { password: KEY },
    client: tokenClient({ allow_anonymous_connect_without_token: true }),
    channel: { without_namespace: open, namespaces: [{ name: 'his', ...open, ...history }, ...MAPS] },
    ...config,
  })

const shows = (id, text) => `document.getElementById('${id}').textContent.includes(${JSON.stringify(text)})`

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

const logIn = (page, key = KEY) => page.fill({ 'login-key': key }, 'login-form')

const go = (page, tab) => page.evaluate(`document.querySelector('#tabs [href="#${tab}"]').click()`)

t.test('an operator logs in, watches, publishes and disconnects', async t => {
  const gateway = await start(t)
  const page = await RemotePage.open(t, `${gateway.url}/admin`)
  await page.until(visible('login'))
  t.notOk(await page.evaluate(visible('signed-in')))

  await logIn(page, 'a guess')
  await page.until(shows('login-fault', 'Login failed: wrong key.'))
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
    await page.fill({ 'channels-pattern': 'new*' }, 'channels-form')
    await page.until(`${shows('channels-count', '1 channel')} && ${rowWith('channels', 'news')}`)
    await page.evaluate(`${rowWith('channels', 'news')}.querySelector('button').click()`)
    t.equal(await page.evaluate(`document.getElementById('publish-channel').value`), 'news')
    await page.fill({ 'publish-data': '{"text": ' }, 'publish-form')
    await page.until(shows('publish-result', 'Invalid JSON'))
    const data = '{"text":"hello","id":12345678901234567890}'
    await page.fill({ 'publish-data': data }, 'publish-form')
    await page.until(shows('publish-result', 'Published to news.'))
    await client.push('pub')
    t.match(client.frames.at(-1), data)
    await page.fill({ 'publish-channel': 'no:such', 'publish-data': '1' }, 'publish-form')
    await page.until(shows('publish-result', 'Publish failed: unknown channel'))
    t.match(page.errors.splice(0), [/404.*publish/])
  })

  t.test('history is read page by page, in both orders, and payloads are texts', async t => {
    const client = await anonymous(t, gateway)
    await client.subscribe('his:news')
    const payloads = ['{"id":12345678901234567890}', JSON.stringify({ text: NAUGHTY }), '"three"']
    await go(page, 'channels')
    for (const [at, data] of payloads.entries()) {
      await page.fill({ 'publish-channel': 'his:news', 'publish-data': data }, 'publish-form')
      await page.until(shows('publish-result', `offset ${at + 1},`))
    }
    const offsets = `[...document.querySelectorAll('#history .offset')].map(({ textContent }) => textContent).join()`
    const reads = list => page.until(`${offsets} === '${list}'`)
    await page.fill({ 'channels-pattern': 'his:*' }, 'channels-form')
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
    await page.fill({ 'history-limit': '2' }, 'history-form')
    await reads('3,2')
    await page.evaluate(`document.getElementById('history-more').focus()`)
    await page.click('history-more')
    await reads('3,2,1')
    await page.until(`${visible('history-more')} === false && document.activeElement.id === 'history'`)
    await page.fill({ 'history-since': '3' }, 'history-form')
    await reads('2,1')
    await page.fill({ 'history-since': '1', 'history-order': 'oldest' }, 'history-form')
    await reads('2,3')
    await page.fill({ 'history-channel': 'news' }, 'history-form')
    await page.until(shows('history-fault', 'History is off in this namespace.'))
    await reads('')
    t.match(page.errors.splice(0), [/40\d.*history/])
  })

  t.test('a map is read page by page and by prefix, and its keys are texts', async t => {
    const channel = 'board:1'
    const client = await anonymous(t, gateway)
    await client.call('subscribe', { channel, type: 1, phase: 2 })
    const publish = (key, value) => gateway.api('map_publish', { channel, key, ...value })
    const keys = ['a-1', 'a-2', 'ä ü', 'ключ', '日本', '🎈🎈', NAUGHTY]
    for (const key of keys) await publish(key, { data: { of: key }, tags: { lang: NAUGHTY } })
    await publish('large', { data: 'x'.repeat(10_000) })
    await publish('a-1', { data: 1 })

    const row = key => rowWith('map-entries', key)
    const cell = (key, column) => page.evaluate(`${row(key)}.children[${column}].textContent`)
    const listed = `[...document.querySelectorAll('#map-entries tbody td.key')].map(({ textContent }) => textContent)`
    const reads = list => page.until(`${listed}.join('|') === ${JSON.stringify(list.join('|'))}`)

    await go(page, 'channels')
    await page.fill({ 'channels-pattern': 'board:*' }, 'channels-form')
    await page.until(rowWith('channels', channel))
    t.match(await page.evaluate(`${rowWith('channels', channel)}.textContent`), 'map')
    // The client speaks JSON, which has no bytes.
    await client.close()
    await publish('bytes', { b64data: Buffer.from([0, 255, 254]).toString('base64') })
    await publish('text', { b64data: Buffer.from('plain text').toString('base64') })
    await page.evaluate(
      `${rowWith('channels', channel)}.querySelector('[aria-label="Keys: ${channel}"]').click()`,
    )
    await page.until(shows('map-count', 'map, persistent · 10 keys · 10 shown · offset 11 · epoch '))
    for (const key of keys.slice(1))
      t.same(
        [await cell(key, 0), await cell(key, 1), await cell(key, 2)],
        [key, JSON.stringify({ of: key }), `lang: ${NAUGHTY}`],
      )
    t.equal(await cell('a-1', 1), '1')
    t.equal(await cell('a-1', 3), '9')
    t.equal(await cell('bytes', 1), 'base64: AP/+')
    t.equal(await cell('text', 1), 'text: plain text')
    t.match(await cell('large', 1), /^"x{299} … 9,702 characters more$/)
    t.match(await cell('large', 4), /^\w+ \d+, 20\d\d, \d\d:\d\d:\d\d$/)
    t.equal(await page.evaluate(`document.querySelectorAll('main img').length`), 0)

    await page.fill({ 'map-prefix': 'a-' }, 'map-form')
    await reads(['a-1', 'a-2'])
    await page.fill({ 'map-prefix': 'a-1' }, 'map-form')
    await reads(['a-1'])
    await page.fill({ 'map-prefix': '日' }, 'map-form')
    await reads(['日本'])
    await page.fill({ 'map-prefix': 'none' }, 'map-form')
    await page.until(shows('map-entries', 'No keys.'))
    await page.fill({ 'map-prefix': '', 'map-limit': '4' }, 'map-form')
    await reads([NAUGHTY, 'a-1', 'a-2', 'bytes'])
    await page.click('map-more')
    await page.until(`${listed}.length === 8`)
    await page.evaluate(`document.getElementById('map-more').focus()`)
    await page.click('map-more')
    await page.until(`${listed}.length === 10 && !${visible('map-more')}`)
    t.equal(await page.evaluate('document.activeElement.id'), 'map-entries')

    await page.fill({ 'map-channel': 'brief:1' }, 'map-form')
    await page.until(shows('map-count', 'map, ephemeral · 0 keys · 0 shown'))
    t.notMatch(await page.text('map-count'), 'offset')
    await page.fill({ 'map-channel': 'news' }, 'map-form')
    await page.until(shows('map-fault', 'This channel is not a map.'))
    await page.until('document.getElementById("map-clear").disabled')
    t.match(page.errors.splice(0), [/400.*map_info/])
  })

  t.test('keys of a map are published, edited and removed, and a map is cleared', async t => {
    const channel = 'board:<2>'
    const client = await anonymous(t, gateway)
    await client.call('subscribe', { channel, type: 1, phase: 2 })
    const row = key => rowWith('map-entries', key)
    await page.fill({ 'map-channel': channel, 'map-prefix': '', 'map-limit': '50' }, 'map-form')
    await page.until(shows('map-count', '0 keys'))
    const data = '{"id":12345678901234567890}'
    await page.fill({ 'map-key': NAUGHTY, 'map-data': '{' }, 'map-publish-form')
    await page.until(shows('map-publish-result', 'Invalid JSON'))
    await page.fill({ 'map-data': data }, 'map-publish-form')
    await page.until(shows('map-publish-result', `Published ${NAUGHTY} to ${channel}, offset 1,`))
    await client.push('pub')
    t.match(client.frames.at(-1), data)
    await page.until(`${row(data)} && ${shows('map-count', '1 key · 1 shown · offset 1')}`)
    await page.fill({ 'map-key': 'other', 'map-data': '"text"' }, 'map-publish-form')
    await page.until(row('other'))

    await page.evaluate(`${row(data)}.querySelector('.buttons button').click()`)
    t.equal(await page.evaluate(`document.getElementById('map-key').value`), NAUGHTY)
    t.equal(await page.evaluate(`document.getElementById('map-data').value`), data)
    await page.fill({ 'map-data': '7' }, 'map-publish-form')
    await page.until(`${row(NAUGHTY)}.children[1].textContent === '7'`)

    await page.evaluate(`${row(NAUGHTY)}.querySelector('.danger').click()`)
    t.match(await page.text('confirm-title'), `Remove ${NAUGHTY}?`)
    await page.click('confirm-yes')
    await page.until(`${shows('map-result', `Removed ${NAUGHTY}.`)} && !${row(NAUGHTY)}`)
    await page.until(shows('map-count', '1 key · 1 shown · offset 4'))

    await gateway.api('map_remove', { channel, key: 'other' })
    await page.evaluate(`${row('other')}.querySelector('.danger').click()`)
    await page.click('confirm-yes')
    await page.until(`${shows('map-result', 'other did not exist any more.')} && !${row('other')}`)

    for (const key of ['k1', 'k2', 'k3']) await gateway.api('map_publish', { channel, key, data: 1 })
    await page.fill({ 'map-limit': '1' }, 'map-form')
    await page.until(row('k1'))
    await page.click('map-clear')
    t.match(await page.text('confirm-title'), `Clear ${channel}?`)
    t.match(await page.text('confirm-text'), '3 keys and all recorded changes')
    await page.evaluate(`document.querySelector('#confirm [value=no]').click()`)
    await page.until(`!document.getElementById('confirm').open`)
    t.equal((await gateway.api('map_stats', { channel })).result.num_keys, 3)
    await page.click('map-clear')
    await page.click('confirm-yes')
    await page.until(`${shows('map-result', `Cleared ${channel}.`)} && ${shows('map-count', '0 keys')}`)

    for (const key of ['k1', 'k2', 'k3']) await gateway.api('map_publish', { channel, key, data: 1 })
    await page.fill({}, 'map-form')
    await page.until(row('k1'))
    await gateway.api('map_clear', { channel })
    await page.click('map-more')
    await page.until(shows('map-fault', 'Cannot load it: unrecoverable position.'))
    await page.fill({ 'map-channel': 'no:such' }, 'map-form')
    await page.until(shows('map-fault', 'Cannot load it: unknown channel.'))
    t.match(page.errors.splice(0), [/4\d\d.*map_read_state/, /404.*map_info/])
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
    await page.fill({ 'users-user': 'anna' }, 'users-form')
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
    await page.until(shows('workers-result', 'garbage collection requested in every worker'))
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

t.test('connections are found by labels, and show what is known of them', async t => {
  const buckets = [{ interval: '1h', rate: 1 }]
  const rate_limit = { client_command: { enabled: true, publish: { enabled: true, buckets } } }
  const gateway = await start(t, { client: tokenClient({ rate_limit }) })
  const page = await RemotePage.open(t, `${gateway.url}/admin`)
  await logIn(page)
  await page.until(shows('link-state', 'live'))
  t.notOk(await page.evaluate(visible('limits-card')), 'nothing was refused yet')
  const enter = (sub, labels, name) => user(t, gateway, { sub, labels }, { name, version: '2.1' })
  const [pro, other, free] = await Promise.all([
    enter('dora', { tier: 'pro', region: NAUGHTY }, 'shop'),
    enter('emil', { tier: 'pro', region: 'eu' }, 'desk'),
    enter('dora', { tier: 'free' }, 'shop'),
  ])
  await pro.subscribe('news')
  await pro.subscribe('$vip', { token: token({ sub: 'dora', channel: '$vip' }) })

  await go(page, 'users')
  await page.until(shows('users-count', '3 connections'))
  const find = (who, labels) => page.fill({ 'users-user': who, 'users-labels': labels }, 'users-form')
  await find('', 'tier')
  await page.until(shows('users-fault', 'Labels: tier is not name=value or name!=value.'))
  await find('', 'tier=pro')
  await page.until(`${shows('users-count', '2 connections')} && !${shows('users-fault', 'Labels')}`)
  const row = await page.evaluate(`${rowWith('users', pro.connect.client)}.textContent`)
  t.match(row, 'shop 2.1')
  t.match(row, `tier=pro, region=${NAUGHTY}`)
  t.match(row, '2: news (options), $vip (subscription token)')
  t.equal(await page.evaluate(`document.querySelectorAll('main img').length`), 0)
  t.ok(await page.fits(390))
  t.ok(await page.fits(1280))
  await find('', 'tier=pro, region!=eu')
  await page.until(shows('users-count', '1 connection'))
  await find('dora', 'tier != pro')
  await page.until(`${shows('users-count', '1 connection')} && ${rowWith('users', free.connect.client)}`)
  await find('', 'tier=pro')
  await page.until(shows('users-count', '2 connections'))
  await page.click('users-all')
  t.match(await page.text('confirm-text'), 'All 2 connections of all users with these labels, on every node,')
  await page.click('confirm-yes')
  for (const client of [pro, other]) t.equal((await client.closed).code, 3503)
  await page.until(shows('users-result', '2 connections disconnected.'))
  await page.until(shows('users-count', '0 connections'))

  for (let n = 0; n < 3; n++) await free.call('publish', { channel: 'news', data: n })
  await go(page, 'live')
  await page.until(`${visible('limits-card')} && ${shows('limits-count', '2 refused commands')}`)
  t.match(
    await page.evaluate(`${rowWith('limits', 'client_command')}.textContent`),
    /client_commandpublish.*2$/,
  )

  // A gateway without lists of blocked users has no such form.
  await go(page, 'users')
  await find('dora', '')
  await page.until(shows('users-count', '1 connection'))
  if (await page.evaluate(visible('block-form'))) {
    await page.fill({ 'block-time': '3600' }, 'block-form')
    t.match(await page.text('confirm-title'), 'Block dora?')
    await page.click('confirm-yes')
    t.equal((await free.closed).code, 3507)
    await page.until(shows('users-result', 'dora is blocked until '))
    const refused = await opened(t, gateway, { id: 1, connect: { token: token({ sub: 'dora' }) } })
    t.equal((await refused.closed).code, 3507)
    await page.click('unblock')
    await page.click('confirm-yes')
    await page.until(shows('users-result', 'dora is not blocked.'))
    await user(t, gateway, { sub: 'dora' })
  }
  t.same(page.faults, [])
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
