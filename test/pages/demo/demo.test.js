import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { developmentProfile } from '../../../src/config/profile.js'
import { drivers } from '../../kit/drivers.js'
import { fetch } from '../../kit/fetch.js'
import { startGateway } from '../../kit/gateway.js'

const CHANNEL = 'demo:vitals'

/**
 * The settings of the development profile, for a file.
 * @param {'uws' | 'node'} driver
 */
function settings(driver) {
  const { http_api, http_server, ...profile } = /** @type {any} */ (developmentProfile('key'))
  return { ...profile, client: { ...profile.client, allowed_origins: ['*'] }, http_server: { driver } }
}

/**
 * A subscriber of the vital signs, as the page has one.
 * @param {any} t
 * @param {import('../../kit/gateway.js').TestGateway} gateway
 */
function watchVitals(t, gateway) {
  const client = new Centrifuge(gateway.ws, {
    websocket: WebSocket,
    minReconnectDelay: 50,
    maxReconnectDelay: 200,
  })
  /** @type {any[]} */
  const samples = []
  /** @type {Set<() => void>} */
  const waiting = new Set()
  const subscription = client.newSubscription(CHANNEL)
  subscription.on('publication', ({ data }) => {
    samples.push(data)
    for (const check of waiting) check()
  })
  subscription.subscribe()
  client.connect()
  t.teardown(() => client.disconnect())
  return {
    client,
    subscription,
    samples,
    /**
     * @param {(sample: any) => boolean} matches
     * @returns {Promise<any>} the first sample that does, past or future
     */
    sample(matches) {
      return new Promise(resolve => {
        const check = () => {
          const found = samples.find(matches)
          if (!found) return
          waiting.delete(check)
          resolve(found)
        }
        waiting.add(check)
        check()
      })
    },
  }
}

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, {
      ...settings(driver),
      workers: driver === 'uws' ? 2 : 1,
      http_stream: { enabled: true, handler_prefix: '/stream/of/its/own' },
      uni_http_stream: { enabled: false },
    })

    t.test('the page and everything it names are served by the gateway itself', async t => {
      const page = await fetch(`${gateway.url}/`)
      t.equal(page.status, 200)
      t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
      const html = await page.text()
      t.match(html, 'data-websocket="/connection/websocket"')
      t.match(html, 'data-api="/api"')
      t.notMatch(html, /\{\{|"key"/, 'all places are filled, and not with the API key')
      const named = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(match => match[1])
      const later = ['/demo/centrifuge.protobuf.js', '/demo/pages/demo/page/long-poll-socket.js']
      const links = ['/', '/admin', '/demo/README.md', '/demo/docs/README.md', '']
      const queue = [...new Set([...named, ...later])].filter(path => !links.includes(path))
      t.ok(queue.length >= 5)
      /** @type {Record<string, string>} */
      const types = {
        css: 'text/css; charset=utf-8',
        js: 'text/javascript; charset=utf-8',
        svg: 'image/svg+xml',
      }
      const seen = new Set(queue)
      for (const path of queue) {
        t.match(path, /^\/demo\/[\w./-]+$/, 'nothing comes from elsewhere')
        const answer = await fetch(gateway.url + path)
        t.equal(answer.status, 200, path)
        t.equal(answer.headers.get('content-type'), types[path.slice(path.lastIndexOf('.') + 1)], path)
        t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
        const body = await answer.text()
        for (const [, imported] of body.matchAll(/^import\b[^'";]*'(\.[^']+)'$/gm)) {
          const next = new URL(imported, gateway.url + path).pathname
          if (!seen.has(next)) queue.push(next)
          seen.add(next)
        }
      }
      t.ok(seen.has('/demo/pages/demo/page/sky.js'), 'modules that modules import are among them')
      t.ok(seen.has('/demo/pages/web/uplot.js'))
    })

    t.test('the policy of the page allows its own scripts, styles and connections only', async t => {
      const { headers } = await fetch(`${gateway.url}/`)
      const policy = headers.get('content-security-policy') ?? ''
      t.match(policy, "default-src 'none'")
      t.match(policy, "script-src 'self'")
      t.match(policy, "frame-ancestors 'none'")
      t.notMatch(policy, /unsafe|\*|https?:/)
      t.notMatch(await (await fetch(`${gateway.url}/`)).text(), /<script>|<style|\son\w+=|\sstyle=/)
    })

    t.test('both builds of the SDK and the long-poll socket run under that policy', async t => {
      for (const name of ['centrifuge.js', 'centrifuge.protobuf.js', 'pages/demo/page/long-poll-socket.js']) {
        const script = await (await fetch(`${gateway.url}/demo/${name}`)).text()
        t.notMatch(script, /\beval\(|\bnew Function\b/, `${name} makes no code from strings`)
      }
    })

    t.test('README and docs are there as text, and the SDK for pages of other origins', async t => {
      const html = await (await fetch(`${gateway.url}/`)).text()
      t.match(html, 'href="/admin"')
      t.match(html, 'href="/demo/README.md"')
      for (const [path, text] of [
        ['/demo/README.md', '# Halley'],
        ['/demo/docs/config.md', 'http_server.port'],
      ]) {
        const answer = await fetch(gateway.url + path)
        t.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
        t.match(await answer.text(), text)
      }
      const policy = async (/** @type {string} */ path) =>
        (await fetch(gateway.url + path)).headers.get('cross-origin-resource-policy')
      t.equal(await policy('/demo/centrifuge.js'), 'cross-origin')
      t.equal(await policy('/demo/pages/demo/page/app.js'), 'same-origin')
    })

    t.test('the page offers what the gateway has open, and nothing else', async t => {
      const html = await (await fetch(`${gateway.url}/`)).text()
      const offered = Object.fromEntries(
        [...html.matchAll(/\sdata-([\w-]+)="([^"]*)"/g)].map(match => [match[1], match[2]]),
      )
      t.match(offered, {
        websocket: '/connection/websocket',
        'http-stream': '/stream/of/its/own',
        sse: '/connection/sse',
        poll: '/connection/poll',
        emulation: '/emulation',
        'uni-sse': '/connection/uni_sse',
        'uni-http-stream': '',
        'uni-poll': '/connection/uni_poll',
      })
    })

    t.test('a file that a browser has is not sent again', async t => {
      const first = await fetch(`${gateway.url}/demo/centrifuge.js`)
      t.equal(first.headers.get('cache-control'), 'no-cache')
      const tag = first.headers.get('etag') ?? ''
      t.match(await first.text(), 'globalThis.Centrifuge')
      const again = await fetch(`${gateway.url}/demo/centrifuge.js`, { headers: { 'If-None-Match': tag } })
      t.equal(again.status, 304)
      t.equal(await again.text(), '')
    })

    t.test('HEAD is answered, other methods are not, and there is nothing else below /demo/', async t => {
      const head = await fetch(`${gateway.url}/`, { method: 'HEAD' })
      t.equal(head.status, 200)
      t.equal(await head.text(), '')
      t.equal((await fetch(`${gateway.url}/`, { method: 'POST', body: 'x' })).status, 405)
      for (const path of [
        '/demo/',
        '/demo/docs/',
        '/demo/pages/demo/index.js',
        '/demo/..%2findex.js',
        '/other',
      ]) {
        t.equal((await fetch(gateway.url + path)).status, 404, path)
      }
    })

    if (driver === 'node') return

    t.test('vital signs of the machine and of every worker arrive once a second', async t => {
      const { subscription, sample, samples } = watchVitals(t, gateway)
      // One may be late, and the next one in time; a held-up worker is missing until its next sample.
      const vitals = await sample(({ workers }) => samples.length >= 4 && workers.length === 2)
      t.ok(samples[3].time - samples[0].time >= 1500)
      t.ok(vitals.cpu >= 0 && vitals.cpu <= 1)
      t.ok(vitals.memory.used < vitals.memory.total)
      t.same(
        vitals.workers.map((/** @type {any} */ { worker }) => worker),
        [0, 1],
      )
      t.same(vitals.workers.map((/** @type {any} */ { pid }) => pid).sort(), [...gateway.workerPids].sort())
      for (const worker of vitals.workers) {
        t.ok(worker.memory > 0)
        t.ok(worker.delay.max >= worker.delay.mean)
      }
      const { workers } = await sample(({ workers }) =>
        workers.some((/** @type {any} */ { messages }) => messages > 0),
      )
      t.equal(
        workers.reduce(
          (/** @type {number} */ sum, /** @type {any} */ { connections }) => sum + connections,
          0,
        ),
        1,
      )
      const { publications } = await subscription.history({ limit: 50 })
      const kept = publications.map(({ data }) => data)
      const last = Math.min(kept.at(-1).time, samples[samples.length - 1].time)
      const common = (/** @type {any[]} */ list) =>
        list.filter(({ time }) => time >= samples[0].time && time <= last)
      t.ok(common(samples).length >= 2)
      t.same(common(kept), common(samples), 'a new page has them all at once')
    })

    t.test('they still arrive after the worker that publishes them was killed', async t => {
      const { sample, samples } = watchVitals(t, gateway)
      const { workers } = await sample(({ workers }) => workers.length === 2)
      const [{ pid }] = workers
      process.kill(pid, 'SIGKILL')
      const after = await sample(({ workers }) => workers.length === 2 && workers[0].pid !== pid)
      t.equal(after.workers[0].worker, 0)
      t.equal(after.workers[1].pid, workers[1].pid)
      const times = samples.map(({ time }) => time)
      t.same(
        times,
        [...new Set(times)].sort((a, b) => a - b),
        'in order, and none twice',
      )
    })
  })
}

t.test('without demo.enabled there is no page', async t => {
  const gateway = await startGateway(t, { workers: 1 })
  t.equal((await fetch(`${gateway.url}/`)).status, 404)
  t.equal((await fetch(`${gateway.url}/demo/pages/demo/page/app.js`)).status, 404)
})
