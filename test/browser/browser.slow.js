// Every transport in a real browser, from a page of another origin, while connections are cut.

import { EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { history, open } from '../clients/session/support.js'
import { transports } from '../guarantees/receivers.js'
import { needsChromium, openPage } from '../kit/browser/browser.js'
import { startGateway } from '../kit/gateway.js'
import { listen } from '../kit/ports.js'
import { TcpProxy } from '../kit/tcp-proxy.js'

needsChromium(t)

const TOTAL = 150

const file = path => readFileSync(fileURLToPath(new URL(path, import.meta.url)))

/** @type {Record<string, [string, Buffer]>} */
const FILES = {
  '/': [
    'text/html',
    Buffer.from(
      '<!doctype html><meta charset="utf-8"><script src="/centrifuge.js"></script><script type="module" src="/page.js"></script>',
    ),
  ],
  '/page.js': ['text/javascript', file('../kit/browser/page.js')],
  '/centrifuge.js': ['text/javascript', file('../../node_modules/centrifuge/dist/centrifuge.js')],
  '/client/long-poll-socket.js': ['text/javascript', file('../../client/long-poll-socket.js')],
}

/** The origin of the page, which also gets its reports. @param {(path: string, body: any) => void} onReport */
async function startPageServer(t, onReport) {
  const server = http.createServer(async (req, res) => {
    if (req.method === 'POST') {
      let text = ''
      for await (const chunk of req) text += chunk
      res.end()
      onReport(/** @type {string} */ (req.url), JSON.parse(text))
      return
    }
    const [type, body] = FILES[new URL(/** @type {string} */ (req.url), 'http://x').pathname] ?? []
    if (!type) res.writeHead(404).end()
    else res.writeHead(200, { 'Content-Type': type }).end(body)
  })
  return listen(t, server)
}

t.test('a page of another origin gets everything once and in order, over every transport', async t => {
  const reports = new EventEmitter()
  const [isReady, isDone] = ['/ready', '/done'].map(path => once(reports, path).then(([body]) => body))
  const port = await startPageServer(t, (path, body) => reports.emit(path, body))
  const gateway = await startGateway(t, {
    ...transports,
    client: {
      allow_anonymous_connect_without_token: true,
      allowed_origins: [`http://127.0.0.1:${port}`],
      recovery_max_publication_limit: TOTAL,
    },
    rpc: { ping: { enabled: true } },
    channel: { without_namespace: { ...open, ...history, history_size: TOTAL, force_recovery: true } },
  })
  const proxy = await TcpProxy.start(t, gateway.port)
  const query = new URLSearchParams({
    gateway: `127.0.0.1:${proxy.port}`,
    channel: 'page',
    total: `${TOTAL}`,
  })
  await openPage(t, `http://127.0.0.1:${port}/?${query}`)
  const failed = await Promise.race([isReady, isDone])
  if (failed.error) return t.fail(failed.error)
  for (let n = 1; n <= TOTAL; n++) {
    const { error } = await gateway.api('publish', { channel: 'page', data: { n } })
    t.notOk(error)
    if (n % 50 === 25) proxy.cut()
    // A browser needs time to reconnect and would miss publications made meanwhile.
    if (n % 10 === 0) await new Promise(resolve => setTimeout(resolve, 50))
  }
  /** @type {any} */
  const results = await isDone
  t.notOk(results.error)
  const ways = ['eventsource', 'http_stream', 'long-poll', 'poll', 'sse', 'websocket']
  t.same(Object.keys(results).sort(), ways)
  const all = Array.from({ length: TOTAL }, (_, i) => i + 1)
  for (const way of ways) {
    t.same(results[way].got, all, way)
    t.equal(results[way].unrecovered, 0, `${way}: every recovery succeeded`)
  }
  for (const way of ['http_stream', 'long-poll', 'sse', 'websocket']) {
    t.same(results[way].note, { history: [{ hello: way }], present: true }, `${way}: history, presence, RPC`)
  }
})
