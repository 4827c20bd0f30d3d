import t from 'tap'
import { lifecycleRedis, logsLifecycle } from '../../src/config/lifecycle.js'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

const secret = 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE='

/** @param {object} lifecycle @param {object} [engine] */
const load = (lifecycle, engine = {}) => loadConfig({ base: { lifecycle, engine } }).config

t.test('the lifecycle log is off until a sink is configured', async t => {
  t.notOk(logsLifecycle(load({})))
  t.notOk(logsLifecycle(load({ events: ['connected'] })))
  t.ok(logsLifecycle(load({ file: { path: 'clients.log' } })))
  t.ok(logsLifecycle(load({ webhook: { url: 'https://a.example/hook', secret } })))
  t.ok(logsLifecycle(load({ redis: { stream: true, address: 'redis://a:1' } })))
})

t.test('an invalid option is a one-line error that names it and shows no secret', async t => {
  for (const [lifecycle, line] of /** @type {[object, string | RegExp][]} */ ([
    [{ events: ['connect'] }, /^lifecycle\.events\[0\]: "connect" is not one of "connected", /],
    [{ webhook: { url: 'hook', secret } }, 'lifecycle.webhook.url: is not a URL like https://host/path'],
    [
      { webhook: { url: 'ftp://x', secret } },
      'lifecycle.webhook.url: does not begin with http:// or https://',
    ],
    [{ webhook: { url: 'http://x' } }, 'lifecycle.webhook.secret: is required: batches are signed'],
    [
      { webhook: { url: 'http://x', secret: 'whsec_%' } },
      'lifecycle.webhook.secret: must have base64 after whsec_',
    ],
    [{ redis: { stream: true } }, /^lifecycle\.redis\.stream: true needs lifecycle\.redis\.address or /],
    [{ redis: { address: 'redis://:pass word@h:x' } }, /^lifecycle\.redis\.address: (?!.*pass word)/],
    [{ redis: { takeover_delay: '1s' } }, /^lifecycle\.redis\.takeover_delay: 1s is out of range/],
    [{ queue_max_bytes: 1 }, /^lifecycle\.queue_max_bytes: 1 is out of range/],
    [{ webhok: {} }, /^lifecycle\.webhok: unknown key; did you mean lifecycle\.webhook/],
  ])) {
    const faults = faultsOf({ lifecycle })
    t.equal(faults.length, 1, JSON.stringify(lifecycle))
    t.match(faults[0], line)
  }
})

t.test('the Redis sink uses its own Redis, or that of the engine', async t => {
  t.equal(lifecycleRedis(load({})), null)
  const engine = { type: 'redis', redis: { address: 'redis://:hush@one:1/3', password: 'hush', prefix: 'p' } }
  t.match(lifecycleRedis(load({}, engine)), { address: ['redis://:hush@one:1/3'], prefix: 'p' })
  const own = lifecycleRedis(load({ redis: { address: 'redis://two:2' } }, engine))
  t.match(own, { address: ['redis://two:2'], prefix: 'p', password: '' }, 'without the other credentials')
})
