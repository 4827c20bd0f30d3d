// The page of a run in a real browser, with every kind of content.

import { once } from 'node:events'
import http from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { makePage } from '../../fleet/runner/page.js'
import { isOfPage, needsChromium, openPage } from '../kit/browser/browser.js'
import { csvText } from '../pages/report/rows.js'
import { latency, result, step } from './run-figures.js'

needsChromium(t)

/** Views pages in frames, one after the other: wide, and as narrow as a phone. */
const WATCHER = `<!doctype html><meta charset="utf-8"><body style="margin:0">
<script>
const errors = []
const turn = () => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))
const look = async (path, width) => {
  const frame = document.createElement('iframe')
  frame.style.cssText = 'height:2400px;border:0;width:' + width + 'px'
  frame.src = path
  const loaded = new Promise(resolve => frame.addEventListener('load', resolve))
  document.body.append(frame)
  await loaded
  const win = frame.contentWindow
  win.addEventListener('error', event => errors.push(event.message))
  win.document.addEventListener('securitypolicyviolation', event => errors.push('policy: ' + event.violatedDirective))
  await turn()
  const page = frame.contentDocument
  const seen = {
    wide: page.documentElement.scrollWidth - win.innerWidth,
    // Tables scroll in their frames where they must: on a phone.
    cut: [...page.querySelectorAll('.table')].filter(table => table.scrollWidth > table.clientWidth)
      .map(table => table.parentElement.querySelector('h2').textContent),
    charts: page.querySelectorAll('canvas').length,
    heads: [...page.querySelectorAll('h2')].map(head => head.textContent),
    bars: page.querySelectorAll('.histogram rect').length,
    verdict: page.querySelector('.verdict').className,
    text: page.body.innerText,
    intruders: page.querySelectorAll('main script, main img, main b b').length,
  }
  frame.remove()
  return seen
}
;(async () => {
  const pages = []
  for (const path of PATHS) for (const width of [1280, 390]) pages.push(await look(path, width))
  return { pages, errors }
})().catch(error => ({ error: String(error.stack), errors, pages: [] })).then(result =>
  fetch('/done', { method: 'POST', body: JSON.stringify(result) }))
</script>`

/**
 * @param {any} t
 * @param {string[]} pages
 * @returns {Promise<{pages: any[], errors: string[], error?: string, output: string}>} two looks at each page
 */
async function look(t, pages) {
  /** @type {(result: any) => void} */
  let done = () => {}
  const seen = new Promise(resolve => {
    done = resolve
  })
  const watcher = WATCHER.replace('PATHS', JSON.stringify(pages.map((_, at) => `/${at}.html`)))
  const server = http.createServer(async (req, res) => {
    const at = /^\/(\d+)\.html$/.exec(String(req.url))?.[1]
    if (req.method === 'POST') {
      let text = ''
      for await (const chunk of req) text += chunk
      res.end()
      done(JSON.parse(text))
    } else res.writeHead(200, { 'Content-Type': 'text/html' }).end(at ? pages[Number(at)] : watcher)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const browser = await openPage(t, `http://127.0.0.1:${port}/`, {
    args: ['--enable-logging=stderr', '--window-size=1400,2500'],
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  browser.stderr?.on('data', chunk => {
    output += chunk
  })
  const found = await seen
  return {
    ...found,
    output: output.split('\n').filter(isOfPage).join('\n'),
  }
}

const GATEWAY = {
  facts: {},
  connection: { heap: null, native: null, user: 2048, kernel: null },
  workerExits: 2,
  listenOverflows: 0,
}
const OWN = {
  cpu: 50,
  cpuPeak: 60,
  machineCpu: 120,
  ticks: { average: 1, p90: 2, max: 3 },
  rss: 1e8,
  connections: 100,
  messagesOut: 1000,
  tcpMemory: 1e6,
  slab: 1e8,
  sockets: 200,
}

t.test('reports of a gateway, another server and two runs have charts', async t => {
  const dir = t.testdir({ 'gateway.csv': csvText() })
  const csv = join(dir, 'gateway.csv')
  const evil = '<script>alert(1)</script><img src=x onerror=alert(2)>'
  const own = result({
    gateway: GATEWAY,
    ownGateway: true,
    plan: { workers: 2, config: {} },
    steps: [
      step({ name: 'first', gateway: OWN }),
      step({ name: 'second', gateway: OWN, disturbances: [{ at: 3, text: 'worker 1 killed with SIGKILL' }] }),
    ],
    limits: [{ limit: '--max-p99', asked: '1ms', step: 'first', ours: '200 ms', broken: true }],
  })
  const foreign = result({
    notes: [evil],
    target: evil,
    events: [{ time: 0, level: 'warn', text: evil }],
    comparison: [{ label: evil, value: evil, note: evil, ours: evil }],
    steps: [
      step({
        name: evil,
        latency: latency([]),
        accounting: { ...step().accounting, expected: 0, received: 0 },
      }),
    ],
  })
  const pages = await Promise.all([
    makePage([{ result: own, csv, label: 'fan-100' }]),
    makePage([{ result: foreign, csv: null, label: evil }]),
    makePage([
      { result: own, csv, label: 'Ours' },
      {
        result: result({ comparison: [{ label: 'Latency', value: '', note: '', ours: '17 ms' }] }),
        csv: null,
        label: 'Theirs',
      },
    ]),
  ])
  const seen = await look(t, pages)
  t.equal(seen.error, undefined)
  t.same(seen.errors, [])
  t.equal(seen.output, '', 'the console is empty')
  for (const [at, { wide, intruders }] of seen.pages.entries()) {
    t.ok(wide <= 0, `page ${at}: nothing is wider than the window`)
    t.equal(intruders, 0, 'text is not markup')
  }
  const [whole, , bare, bareNarrow, both] = seen.pages
  for (const { cut } of [whole, bare, both]) t.same(cut, [], 'no table is wider than a window')
  t.notOk(bareNarrow.cut.includes('Latency'), 'a table of one step fits on a phone')
  t.equal(whole.charts, 8)
  t.match(whole.verdict, 'bad')
  t.same(whole.heads.slice(0, 5), [
    'Limit violated',
    'Comparison with the published run',
    'Differences from the published run',
    'Steps',
    'Latency',
  ])
  for (const head of [
    'Latency distribution',
    'Disturbances',
    'Limits',
    'Accounting',
    'Drones',
    'Kernel settings',
  ])
    t.ok(whole.heads.includes(head), head)
  t.ok(whole.bars >= 6)
  t.match(whole.text, /2\.35 ms\s+42 ms/, 'the published figure beside ours')
  t.match(whole.text, /It is another machine\./)
  t.equal(bare.charts, 0)
  t.ok(bare.text.includes(evil))
  t.equal(both.charts, 8)
  t.match(both.text, /Ours\s+Theirs[\s\S]*2\.35 ms\s+42 ms\s+17 ms/)
})
