import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { developmentProfile } from '../../../src/config/profile.js'
import { drivers } from '../../kit/drivers.js'
import { fetch } from '../../kit/fetch.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { crawl, namedIn } from '../crawl.js'

const sum = numbers => numbers.reduce((total, number) => total + number, 0)

/** Subscribes to the vital signs like the page. */
function watchVitals(t, gateway) {
  const client = new Centrifuge(gateway.ws, {
    websocket: WebSocket,
    minReconnectDelay: 50,
    maxReconnectDelay: 200,
  })
  const samples = []
  const subscription = client.newSubscription('demo:vitals')
  subscription.on('publication', ({ data }) => samples.push(data))
  subscription.subscribe()
  client.connect()
  t.teardown(() => client.disconnect())
  /** The first such sample. @param {(sample: any) => boolean} matches @returns {Promise<any>} */
  const sample = matches => until(() => samples.find(matches))
  return { subscription, samples, sample }
}

for (const driver of drivers) {
  t.test(driver, async t => {
    const { http_api, http_server, ...profile } = /** @type {any} */ (developmentProfile('key'))
    const gateway = await startGateway(t, {
      ...profile,
      client: { ...profile.client, allowed_origins: ['*'] },
      http_server: { driver },
      workers: driver === 'uws' ? 2 : 1,
      http_stream: { enabled: true, handler_prefix: '/stream/of/its/own' },
      uni_http_stream: { enabled: false },
    })
    const get = (path, init = {}) => fetch(gateway.url + path, init)
    const page = await get('/')
    const html = await page.text()

    t.test('the gateway serves the page with all its files', async t => {
      t.equal(page.status, 200)
      t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
      t.notMatch(html, /\{\{|"key"/, 'all placeholders are replaced, and not with the API key')
      const links = ['/', '/admin', '/demo/README.md', '/demo/docs/README.md', '']
      const later = ['/demo/centrifuge.protobuf.js', '/demo/pages/demo/page/long-poll-socket.js']
      const files = [...namedIn(html), ...later].filter(path => !links.includes(path))
      t.ok(files.length >= 5)
      const seen = await crawl(t, gateway.url, files, '/demo/')
      for (const path of ['pages/demo/page/sky.js', 'pages/web/uplot.js'])
        t.ok(seen.has(`/demo/${path}`), `${path} is imported by a module`)
    })

    t.test('the policy of the page allows only its own scripts, styles and connections', async t => {
      const policy = page.headers.get('content-security-policy') ?? ''
      for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"])
        t.match(policy, part)
      t.notMatch(policy, /unsafe|\*|https?:/)
      t.notMatch(html, /<script>|<style|\son\w+=|\sstyle=/)
    })

    t.test('README and docs are served as text, and the SDK for pages of all origins', async t => {
      t.match(html, 'href="/admin"')
      t.match(html, 'href="/demo/README.md"')
      for (const [path, text] of [
        ['/demo/README.md', '# Halley'],
        ['/demo/docs/config.md', 'http_server.port'],
      ]) {
        const answer = await get(path)
        t.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
        t.match(await answer.text(), text)
      }
      const policy = async path => (await get(path)).headers.get('cross-origin-resource-policy')
      t.equal(await policy('/demo/centrifuge.js'), 'cross-origin')
      t.equal(await policy('/demo/pages/demo/page/app.js'), 'same-origin')
    })

    t.test('the page offers only the enabled transports', async t => {
      const offered = [...html.matchAll(/\sdata-([\w-]+)="([^"]*)"/g)].map(([, name, path]) => [name, path])
      t.match(Object.fromEntries(offered), {
        api: '/api',
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

    t.test('a cached file is not sent again', async t => {
      const first = await get('/demo/centrifuge.js')
      t.equal(first.headers.get('cache-control'), 'no-cache')
      t.match(await first.text(), 'globalThis.Centrifuge')
      const headers = { 'If-None-Match': first.headers.get('etag') ?? '' }
      const again = await get('/demo/centrifuge.js', { headers })
      t.equal(again.status, 304)
      t.equal(await again.text(), '')
    })

    t.test('HEAD is answered, other methods are refused, other paths get 404', async t => {
      const head = await get('/', { method: 'HEAD' })
      t.equal(head.status, 200)
      t.equal(await head.text(), '')
      t.equal((await get('/', { method: 'POST', body: 'x' })).status, 405)
      for (const path of [
        '/demo/',
        '/demo/docs/',
        '/demo/pages/demo/index.js',
        '/demo/..%2findex.js',
        '/other',
      ])
        t.equal((await get(path)).status, 404, path)
    })

    if (driver === 'node') return

    t.test('vital signs of the machine and of every worker arrive once a second', async t => {
      const { subscription, sample, samples } = watchVitals(t, gateway)
      // One sample may be late and the next one in time; a blocked worker is missing until its next sample.
      const vitals = await sample(({ workers }) => samples.length >= 4 && workers.length === 2)
      t.ok(samples[3].time - samples[0].time >= 1500)
      t.ok(vitals.cpu >= 0 && vitals.cpu <= 1)
      t.ok(vitals.memory.used < vitals.memory.total)
      t.match(vitals.workers, [{ worker: 0 }, { worker: 1 }])
      t.same(vitals.workers.map(({ pid }) => pid).sort(), [...gateway.workerPids].sort())
      for (const { memory, delay } of vitals.workers) t.ok(memory > 0 && delay.max >= delay.mean)
      const { workers } = await sample(({ workers }) => workers.some(({ messages }) => messages > 0))
      t.equal(sum(workers.map(({ connections }) => connections)), 1)
      const { publications } = await subscription.history({ limit: 50 })
      const kept = publications.map(({ data }) => data)
      const last = Math.min(kept.at(-1).time, samples[samples.length - 1].time)
      const common = list => list.filter(({ time }) => time >= samples[0].time && time <= last)
      t.ok(common(samples).length >= 2)
      t.same(common(kept), common(samples), 'the history has the same samples')
    })

    t.test('vital signs continue after the worker that publishes them is killed', async t => {
      const { sample, samples } = watchVitals(t, gateway)
      const { workers } = await sample(({ workers }) => workers.length === 2)
      const [{ pid }] = workers
      process.kill(pid, 'SIGKILL')
      const after = await sample(({ workers }) => workers.length === 2 && workers[0].pid !== pid)
      t.match(after.workers, [{ worker: 0 }, { worker: 1, pid: workers[1].pid }])
      const times = samples.map(({ time }) => time)
      t.same(
        times,
        [...new Set(times)].sort((a, b) => a - b),
        'in order, without duplicates',
      )
    })
  })
}

t.test('without demo.enabled there is no page', async t => {
  const gateway = await startGateway(t, { workers: 1 })
  for (const path of ['/', '/demo/pages/demo/page/app.js'])
    t.equal((await fetch(gateway.url + path)).status, 404, path)
})
