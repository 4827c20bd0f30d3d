// Rules of user_status and cache_empty.

import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

/** @param {object} options of user_status @param {string} [type] of the engine */
const tree = (options, type = 'memory') => ({
  engine: { type },
  user_status: { enabled: true, ...options },
})

t.test('the storage is that of the engine, unless it is named', async t => {
  t.strictSame(faultsOf(tree({})), [])
  t.strictSame(faultsOf(tree({ storage_type: 'redis' })), [])
  t.strictSame(faultsOf(tree({ redis: { reuse_from_engine: true } }, 'redis')), [])
  t.match(faultsOf(tree({ storage_type: 'memory' }, 'redis')).join(), /user_status\.storage_type/)
  const reuse = tree({ storage_type: 'redis', redis: { reuse_from_engine: true } })
  t.match(faultsOf(reuse).join(), /user_status\.redis\.reuse_from_engine/)
  t.match(faultsOf(tree({ storage_type: 'database' })).join(), /user_status\.storage_type/)
  const address = { redis: { address: 'ftp://x' } }
  t.match(faultsOf(tree({ storage_type: 'redis', ...address })).join(), /user_status\.redis\.address/)
})

t.test('Redis that is not used is a warning', async t => {
  const { warnings } = loadConfig({ base: tree({ redis: { address: 'redis://status:6379' } }) })
  t.match(warnings.join(), /user_status\.redis\.address.*no effect/)
  t.notMatch(loadConfig({ base: tree({}) }).warnings.join(), /user_status/)
})

t.test('cache_empty needs the cache mode, an endpoint and a known proxy', async t => {
  const channel = (/** @type {object} */ options, /** @type {object} */ more = {}) =>
    faultsOf({
      channel: { ...more, without_namespace: { cache_empty_proxy_enabled: true, ...options } },
    }).join()
  const cache = { force_recovery_mode: 'cache' }
  const proxy = { proxy: { cache_empty: { endpoint: 'http://127.0.0.1/x' } } }
  t.equal(channel(cache, proxy), '')
  t.match(channel({}, proxy), /cache_empty_proxy_enabled.*force_recovery_mode/)
  t.match(channel(cache), /channel\.proxy\.cache_empty\.endpoint/)
  t.match(channel({ ...cache, cache_empty_proxy_name: 'other' }, proxy), /unknown proxy "other"/)
})
