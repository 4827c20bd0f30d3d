// The examples of maps in a browser: two pages that see each other, and pages that reconnect.

import t from 'tap'
import { startExample } from '../examples/example.js'
import { needsChromium } from '../kit/browser/browser.js'
import { RemotePage } from '../kit/browser/remote-page.js'
import { fetch } from '../kit/fetch.js'

needsChromium(t)

const is = (id, text) => `document.getElementById('${id}').textContent === ${JSON.stringify(text)}`
const has = (id, text) => `document.getElementById('${id}').textContent.includes(${JSON.stringify(text)})`

/** @param {any} t @param {string} name of the example @returns its address, and two connected pages */
async function openTwo(t, name) {
  // The answer takes long enough to open a page meanwhile, also on a busy machine.
  const { app } = await startExample(t, name, { DELAY: '120' })
  const pages = await Promise.all([RemotePage.open(t, app), RemotePage.open(t, app)])
  for (const page of pages) await page.until(is('link', 'connected'))
  for (const width of [360, 1280]) t.ok(await pages[0].fits(width), `${width} pixels wide`)
  return { app, pages }
}

/** Goes offline or online. @param {RemotePage} page */
async function toggle(page) {
  const online = await page.evaluate(is('link', 'connected'))
  await page.click('link')
  await page.until(is('link', online ? 'disconnected' : 'connected'))
}

t.test('cursors: each page shows the others, with their names, until they are gone', async t => {
  const { app, pages } = await openTwo(t, 'cursors')
  const [ann, ben] = pages
  const SHOWN = `[...document.querySelectorAll('.cursor')].map(({ textContent, dataset }) => textContent + ' ' + dataset.at).join(', ')`
  const shows = (page, text) => page.until(`${SHOWN} === ${JSON.stringify(text)}`)
  const move = (page, ...places) =>
    page.evaluate(`(() => {
      const area = document.getElementById('area')
      const { left, top, width, height } = area.getBoundingClientRect()
      for (const [x, y] of ${JSON.stringify(places)}) {
        const at = { clientX: left + x * width, clientY: top + y * height }
        area.dispatchEvent(new PointerEvent('pointermove', at))
      }
    })()`)

  await ann.fill({ name: 'Zoë 🦊' })
  await move(ann, [0.1, 0.1], [0.2, 0.3], [0.25, 0.5])
  await shows(ben, 'Zoë 🦊 0.25,0.5')
  await ben.fill({ name: '小明' })
  await move(ben, [0.75, 0.25])
  await shows(ann, '小明 0.75,0.25')
  await ann.fill({ name: 'Jürgen' })
  await shows(ben, 'Jürgen 0.25,0.5')

  const late = await RemotePage.open(t, app)
  await late.until(`document.querySelectorAll('.cursor').length === 2`)
  await late.go('about:blank')

  await toggle(ann)
  await shows(ben, '')
  await move(ben, [0.5, 0.75])
  await toggle(ann)
  await shows(ben, 'Jürgen 0.25,0.5')
  await shows(ann, '小明 0.5,0.75')

  // A burst of moves is at most one position in 50 ms, and the last one.
  const sent = await ann.evaluate(`(async () => {
    let frames = 0
    const { send } = WebSocket.prototype
    WebSocket.prototype.send = function (data) {
      frames += data.split('"publish"').length - 1
      return send.call(this, data)
    }
    const area = document.getElementById('area')
    const { left, top, width } = area.getBoundingClientRect()
    const start = performance.now()
    for (let n = 1; n <= 300; n++) {
      area.dispatchEvent(new PointerEvent('pointermove', { clientX: left + (n / 400) * width, clientY: top }))
      if (n % 10 === 0) await new Promise(requestAnimationFrame)
    }
    return { frames, time: performance.now() - start }
  })()`)
  await shows(ben, 'Jürgen 0.75,0')
  t.same([...ann.faults, ...ben.faults, ...late.faults], [])
  t.ok(sent.frames <= 1 + sent.time / 50, `${sent.frames} positions in ${sent.time} ms`)

  await ben.go('about:blank')
  await shows(ann, '')
})

t.test('kanban: cards move at once, an edit of an older card is refused, a reconnect recovers', async t => {
  const { pages } = await openTwo(t, 'kanban')
  const [ann, ben] = pages
  const shows = (page, column, text) => page.until(has(column, text))
  /** @param {RemotePage} page @param {string} key @param {string} name of a button */
  const press = (page, key, name) =>
    page.evaluate(
      `[...document.querySelectorAll('#card-${key} button')].find(({ textContent }) => textContent === '${name}').click()`,
    )
  await ann.fill({ name: 'Zoë 🦊' })
  await ben.fill({ name: '小明' })
  for (const page of pages) {
    await shows(page, 'todo', 'Grüße an die Crew 🚀')
    await shows(page, 'counts', 'Board read 1 ×, recovered 0 ×')
  }
  await press(ann, '1', '→')
  for (const page of pages) await shows(page, 'doing', 'Grüße an die Crew 🚀Zoë 🦊')

  // Both edit one card; the second one is refused, and may try again.
  await press(ann, '2', '✎')
  await press(ben, '2', '✎')
  await ann.fill({ text: 'Ännas 彗星 ☄️' }, 'edit')
  await shows(ben, 'todo', 'Ännas 彗星 ☄️')
  await ben.fill({ text: '<b>Bens</b>' }, 'edit')
  await ben.until(
    `${is('reason', 'Zoë 🦊 has changed this card meanwhile:')} && ${is('current', 'Ännas 彗星 ☄️')}`,
  )
  t.equal(await ben.evaluate(`document.getElementById('text').value`), '<b>Bens</b>', 'its text is kept')
  t.ok(await ben.evaluate(has('card-2', 'Ännas 彗星 ☄️')), 'the board shows the current card')
  await ben.fill({}, 'edit')
  for (const page of pages) await shows(page, 'todo', '<b>Bens</b>小明')
  t.notOk(await ben.evaluate(`document.getElementById('editor').open`))

  // A card that was deleted meanwhile.
  await press(ann, '3', '✎')
  await press(ben, '3', '✎')
  await ben.click('remove')
  await ann.until(`!document.getElementById('card-3')`)
  await ann.fill({ text: 'still here' }, 'edit')
  await ann.until(is('current', '(deleted)'))
  await ann.fill({}, 'edit')
  for (const page of pages) await shows(page, 'doing', 'still here')

  // A new card, with a text that the gateway refuses at first.
  await ann.evaluate(`document.querySelector('#done > button').click()`)
  await ann.fill({ text: '   ' }, 'edit')
  await shows(ann, 'reason', 'Not saved: a card has 1 to 500 characters')
  await ann.fill({ text: 'neu 🎈' }, 'edit')
  for (const page of pages) await shows(page, 'done', 'neu 🎈')

  // Missed changes are recovered; the state is not read again.
  await toggle(ann)
  await press(ben, '1', '→')
  await shows(ben, 'done', 'Grüße an die Crew 🚀小明')
  await press(ben, '4', '✎')
  await ben.click('remove')
  await ben.until(`!document.getElementById('card-4')`)
  t.ok(await ann.evaluate(has('doing', 'Grüße an die Crew 🚀')), 'an older board while offline')
  await toggle(ann)
  await shows(ann, 'done', 'Grüße an die Crew 🚀小明')
  await ann.until(`!document.getElementById('card-4')`)
  await shows(ann, 'counts', 'Board read 1 ×, recovered 1 ×')
  const BOARD = `document.getElementById('columns').textContent`
  t.equal(await ann.evaluate(BOARD), await ben.evaluate(BOARD))
  t.same([...ann.faults, ...ben.faults], [])
})

t.test('token stream: all pages show the same text, also late and reconnected ones', async t => {
  const { app, pages } = await openTwo(t, 'token-stream')
  const [ann, ben] = pages
  const late = await RemotePage.open(t, 'about:blank')
  const TEXT = `(document.querySelector('article:last-of-type .answer')?.textContent ?? '')`
  const WRITING = `document.querySelector('article:last-of-type')?.className === 'writing'`
  const longer = (page, length) => page.until(`${TEXT}.length > ${length}`)

  await ann.fill({ question: 'Was ist ein Komet? ☄️ 彗星' }, 'ask')
  for (const page of pages) await longer(page, 20)
  await toggle(ben)
  await late.go(app)
  await longer(late, 0)
  const opened = await late.evaluate(`({ length: ${TEXT}.length, writing: ${WRITING} })`)
  t.ok(opened.length > 20 && opened.writing, 'opened in the middle, with the text so far')
  const missed = await ben.evaluate(`${TEXT}.length`)
  await longer(ann, missed + 50)
  await toggle(ben)
  await ben.until(`${TEXT}.length > ${missed} && ${has('counts', 'recovered 1 ×')}`)

  for (const page of [...pages, late]) {
    await page.until(`document.querySelector('article')?.className === ''`)
    t.equal(await page.text('talk'), await ann.text('talk'))
  }
  t.match(await ann.text('talk'), /Was ist ein Komet\? ☄️ 彗星A comet is .*哈雷彗星.*live to see it 🔭\.$/s)
  for (const page of [...pages, late]) t.match(await page.text('counts'), 'Map read 1 ×')
  t.same([...ann.faults, ...ben.faults, ...late.faults], [])
  t.equal((await fetch(`${app}/ask`, { method: 'POST', body: ' ' })).status, 400)
  t.equal((await fetch(`${app}/ask`, { method: 'POST', body: 'x'.repeat(301) })).status, 413)
})
