// The report in a real browser: it draws without errors.

import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import { json } from 'node:stream/consumers'
import t from 'tap'
import { parseCsv } from '../../../src/metrics/csv-reader.js'
import { renderPage } from '../../../src/pages/report/page.js'
import { makeRun } from '../../../src/pages/report/run.js'
import { isOfPage, needsChromium, openPage } from '../../kit/browser/browser.js'
import { listen } from '../../kit/ports.js'
import { csvText } from './rows.js'

needsChromium(t)

/** Examines the report in a frame: its own policy allows no foreign script. */
const WATCHER = `<!doctype html><meta charset="utf-8"><body style="margin:0">
<script>
const errors = []
const frame = document.createElement('iframe')
frame.style.cssText = 'width:1300px;height:2400px;border:0'
frame.src = '/report'
document.body.append(frame)
const turn = () => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))
const pixels = canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true })
  copy.drawImage(canvas, 0, 0)
  return copy.getImageData(0, 0, canvas.width, canvas.height).data
}
// Names in a legend whose colour is missing in the chart, and the others.
const linesOf = chart => {
  const data = pixels(chart.querySelector('canvas'))
  const colors = new Set()
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] === 255) colors.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2])
  }
  const drawn = []
  const missing = []
  for (const key of chart.querySelectorAll('.chart-key')) {
    if (key.querySelector('.chart-value').textContent === '-') continue
    const name = key.style.getPropertyValue("--key").trim().slice(4, -1)
    const label = key.querySelector('.chart-label')
    label.style.color = 'var(' + name + ')'
    const [red, green, blue] = frame.contentWindow.getComputedStyle(label).color.match(/\\d+/g)
    ;(colors.has((red << 16) | (green << 8) | blue) ? drawn : missing).push(label.textContent)
  }
  return { drawn, missing }
}
const tell = result => fetch('/done', { method: 'POST', body: JSON.stringify(result) })
const look = async () => {
  const win = frame.contentWindow
  const page = frame.contentDocument
  if (page.documentElement.dataset.ready !== 'true') throw new Error('it is not ready')
  await turn()
  const canvases = [...page.querySelectorAll('canvas')]
  const charts = canvases.map(canvas => ({
    chart: canvas.closest('.chart').dataset.chart,
    ratio: canvas.width / canvas.clientWidth,
    ...linesOf(canvas.closest('.chart')),
  }))
  const legends = () => [...page.querySelectorAll('.chart')].map(chart => ({
    time: chart.querySelector('.chart-time').textContent,
    values: [...chart.querySelectorAll('.chart-value')].map(value => value.textContent),
  }))
  const still = legends()
  const over = page.querySelector('.u-over')
  const { left, top, width, height } = over.getBoundingClientRect()
  const move = { clientX: left + width / 2, clientY: top + height / 2, bubbles: true, view: win }
  over.dispatchEvent(new win.MouseEvent('mouseenter', move))
  over.dispatchEvent(new win.MouseEvent('mousemove', move))
  await turn()
  const hovered = legends()
  win.dispatchEvent(new win.Event('beforeprint'))
  await turn()
  const paper = { theme: page.querySelector('.charts').dataset.theme, width: page.body.clientWidth, ...linesOf(canvases[0].closest('.chart')) }
  win.dispatchEvent(new win.Event('afterprint'))
  await turn()
  const wide = page.documentElement.scrollWidth <= win.innerWidth
  frame.style.width = '390px'
  await turn()
  const clipped = [page.documentElement, ...page.querySelectorAll('.table')]
    .filter(element => element.scrollWidth > element.clientWidth)
    .map(element => element.closest('section')?.querySelector('h2').textContent ?? 'page')
  return { charts, still, hovered, paper, wide, clipped, after: page.querySelector('.charts').dataset.theme }
}
frame.addEventListener('load', () => {
  const win = frame.contentWindow
  win.addEventListener('error', event => errors.push(event.message))
  win.document.addEventListener('securitypolicyviolation', event => errors.push('policy: ' + event.violatedDirective))
  look().then(
    result => tell({ ...result, errors }),
    error => tell({ error: String(error.stack), errors }),
  )
})
</script>`

/** @returns {Promise<{result: any, requests: string[], console: string}>} `requests` of the browser */
async function look(t, page) {
  const requests = []
  const done = new EventEmitter()
  const server = http.createServer(async (req, res) => {
    requests.push(req.url)
    if (req.method === 'POST') {
      const result = await json(req)
      res.end()
      done.emit('result', result)
    } else {
      res.writeHead(200, { 'Content-Type': 'text/html' }).end(req.url === '/report' ? page : WATCHER)
    }
  })
  const browser = await openPage(t, `http://127.0.0.1:${await listen(t, server)}/`, {
    args: ['--enable-logging=stderr', '--window-size=1400,2500'],
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  browser.stderr?.on('data', chunk => (output += chunk))
  const [result] = await once(done, 'result')
  return { result, requests, console: output.split('\n').filter(isOfPage).join('\n') }
}

/** @param {import('../../../src/pages/report/run.js').Run[]} runs */
const pageOf = runs => renderPage({ title: 'A run', runs, version: '1.0.0' })

async function run(text, label = 'run', points = 1200) {
  const { columns, facts } = await parseCsv([text])
  return makeRun({ label, columns, facts, points })
}

t.test('a report of one run draws every chart, for screen and paper', async t => {
  const { result, requests, console } = await look(t, pageOf([await run(csvText())]))
  t.equal(result.error, undefined)
  t.same(result.errors, [])
  t.equal(console, '', 'the console is empty')
  t.same(
    requests.filter(url => !['/', '/report', '/done', '/favicon.ico'].includes(url)),
    [],
  )
  t.same(
    result.charts.map(({ chart }) => chart),
    ['memory', 'ticks', 'cpu', 'arrivals', 'messages', 'bandwidth', 'gc', 'connection'],
  )
  for (const { chart, drawn, missing, ratio } of result.charts) {
    t.same(missing, [], chart)
    t.ok(drawn.length > 0, chart)
    t.ok(ratio > 2.9, `${chart}: ${ratio} pixels to one of the page`)
  }
  t.equal(result.still[0].time, 'highest')
  t.equal(result.still[0].values[3], '10,000')
  t.equal(result.still[1].values[0], '200 ms')
  for (const { time } of result.hovered) t.match(time, /^59s · |^1m · /, 'all charts share a cursor')
  t.equal(result.hovered[1].values[0], result.hovered[1].time.startsWith('1m') ? '200 ms' : '9 ms')
  t.match(result.paper, { theme: 'light', width: 690 })
  t.same(result.paper.drawn, ['Kernel', 'Native', 'JS heap', 'Connections'])
  t.equal(result.after, 'auto')
  t.ok(result.wide, 'no element is wider than the window')
  t.same(result.clipped, [], 'no element is wider than a phone')
})

t.test('several runs are overlaid and shown side by side', async t => {
  const runs = [
    await run(csvText(), 'First'),
    await run(csvText({ connections: 4000, seconds: 3000 }), 'Second', 400),
  ]
  const { result, console } = await look(t, pageOf(runs))
  t.equal(result.error, undefined)
  t.same(result.errors, [])
  t.equal(console, '')
  t.equal(result.charts.length, 6 + 2 * 8)
  for (const { chart, missing } of result.charts) t.same(missing, [], chart)
  t.same(result.still[0].values, ['10,000', '4,000'])
  t.ok(result.wide)
  t.same(result.clipped, [], 'no element is wider than a phone')
})

t.test('a file with almost no data still gives a page', async t => {
  const { result, console } = await look(t, pageOf([await run('time,connections\n1000,5\n2000,6\n')]))
  t.equal(result.error, undefined)
  t.same(result.errors, [])
  t.equal(console, '')
  t.equal(result.charts.length, 8)
  t.equal(result.still[0].values[3], '6')
  t.equal(result.still[2].values[0], '-')
})
