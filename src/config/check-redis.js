import { tlsFaults } from './pem.js'
import { redisShards } from './redis-shards.js'
import { show } from './values.js'

/** @typedef {import('./error.js').Report} Report */

const BLOCK = 'engine.redis'

/**
 * What can be told of the Redis engine's options without asking Redis.
 * @param {Readonly<Record<string, any>>} redis `engine.redis` of the configuration
 * @param {Report} report
 */
export function checkRedis(redis, report) {
  const keys = ['address', 'cluster_address', 'sentinel_address', 'sentinel_master_name', 'db']
  const shards = redisShards(redis, (key, text) =>
    report.say([key, ...keys.map(name => `${BLOCK}.${name}`)], text),
  )
  for (const { key, later } of shards) {
    for (const option of later)
      report.warn(key, `Centrifugo has the option ${option}, Halley has not yet; it is ignored`)
  }
  if (!/^[^\s{}]+$/.test(redis.prefix)) {
    const fault = redis.prefix === '' ? 'is empty' : `${show(redis.prefix)} has a space or a brace in it`
    report.say([`${BLOCK}.prefix`], fault)
  }
  if (!/^[!-~]*$/.test(redis.client_name)) {
    report.say(
      [`${BLOCK}.client_name`],
      `${show(redis.client_name)} has other characters than ASCII without spaces`,
    )
  }
  const sentinels = shards.some(({ kind, sentinel_tls: tls }) => kind === 'sentinel' && tls)
  for (const [block, used] of [
    ['tls', redis.tls.enabled || shards.some(({ tls }) => tls)],
    ['sentinel_tls', redis.sentinel_tls.enabled || sentinels],
  ]) {
    if (!used) continue
    for (const [key, fault] of tlsFaults(redis[block])) report.say([`${BLOCK}.${block}.${key}`], fault)
  }
}
