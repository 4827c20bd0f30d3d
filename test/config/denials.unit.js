import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

/** @param {object} user_block @param {object} [more] */
const faults = (user_block, more) => faultsOf({ user_block, ...more })
const redis = { storage_type: 'redis' }

t.test('the store of blocked users', async t => {
  const { config } = loadConfig({ base: {} })
  for (const name of /** @type {const} */ (['user_block', 'token_revoke', 'user_tokens_invalidate']))
    t.match(config[name], {
      ...{ storage_type: 'memory', max_entries: 200_000 },
      redis: { address: ['redis://127.0.0.1:6379'], prefix: 'halley', reuse_from_engine: false },
    })
  t.same(faults({ ...redis, redis: { address: 'redis://127.0.0.1:6380' } }), [])
  t.same(faults({ ...redis, redis: { sentinel_address: ['a:1,b:1'], sentinel_master_name: 'm' } }), [])
  const engine = { engine: { type: 'redis', redis: { address: ['a:1', 'b:1'] } } }
  t.same(faults({ ...redis, redis: { reuse_from_engine: true } }, engine), [])
})

t.test('stores that cannot be used', async t => {
  for (const [given, fault] of /** @type {[object, RegExp][]} */ ([
    [{ storage_type: 'database' }, /^user_block\.storage_type: .*use memory or redis/],
    [{ storage_type: 'file' }, /^user_block\.storage_type: /],
    [
      { ...redis, redis: { address: ['a:1', 'b:1'] } },
      /^user_block\.redis\.address: has 2 addresses; exactly one/,
    ],
    [{ ...redis, redis: { address: 'http://a' } }, /^user_block\.redis\.address: /],
    [{ ...redis, redis: { prefix: '' } }, /^user_block\.redis\.prefix: is empty/],
    [
      { ...redis, redis: { reuse_from_engine: true } },
      /^user_block\.redis\.reuse_from_engine: true needs engine/,
    ],
    [{ max_entries: 0 }, /^user_block\.max_entries: /],
  ])) {
    const found = faults(given)
    t.equal(found.length, 1, found.join('; '))
    t.match(found[0], fault)
  }
})
