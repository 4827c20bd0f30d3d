// Calls of maps, for the tests of the contract.

import { HOUR } from './peer.js'

/** @import { MapPublish, MapResult, MapRules, Publication, StatePage, StateQuery } from '../../../../src/channels/broker/contract.js' */

const CENTURY = 100 * 365 * 24 * HOUR
/** @type {MapRules} */
export const RULES = { keyTtl: HOUR, streamSize: 100, streamTtl: HOUR, metaTtl: 2 * HOUR }
/** @type {MapRules} */
export const PERSISTENT = { ...RULES, keyTtl: 0, metaTtl: CENTURY }
/** @type {MapRules} */
export const EPHEMERAL = { keyTtl: HOUR, streamSize: 0, streamTtl: 0, metaTtl: 0 }

/**
 * @param {any} peer @param {string | Buffer} data @param {MapPublish} [options] @returns {Promise<MapResult>}
 */
export const put = (peer, channel, key, data, options = {}, rules = RULES) =>
  new Promise((resolve, reject) =>
    peer.broker.maps.publish(channel, key, data, rules, options, (error, result) =>
      error ? reject(error) : resolve(result),
    ),
  )

/** @returns {Promise<MapResult>} */
export const remove = (peer, channel, key, options = {}, rules = RULES) =>
  new Promise((resolve, reject) =>
    peer.broker.maps.remove(channel, key, rules, options, (error, result) =>
      error ? reject(error) : resolve(result),
    ),
  )

/** @param {Partial<StateQuery>} [query] @returns {Promise<StatePage>} */
export const page = (peer, channel, query = {}, rules = RULES) =>
  peer.broker.maps.state(
    channel,
    { cursor: '', limit: 1000, key: '', epoch: '', upTo: 0, maxBytes: 0, ...query },
    rules,
  )

/** @param {Partial<StateQuery>} [query] @returns {Promise<StatePage[]>} all pages */
export async function pages(peer, channel, query = {}, rules = RULES) {
  const read = []
  for (let cursor = ''; read.length === 0 || cursor !== ''; ) {
    const next = await page(peer, channel, { ...query, cursor }, rules)
    read.push(next)
    cursor = next.cursor
  }
  return read
}

/** @returns {Promise<Publication[]>} all entries, by key */
export const entries = async (peer, channel, rules = RULES) => byKey(await pages(peer, channel, {}, rules))
export const byKey = read =>
  read
    .flatMap(({ entries }) => entries)
    .sort((a, b) => Buffer.compare(Buffer.from(a.keyed.key), Buffer.from(b.keyed.key)))

/** @returns {Promise<Record<string, string>>} */
export const values = async (peer, channel, rules = RULES) =>
  Object.fromEntries(
    (await entries(peer, channel, rules)).map(({ keyed, data }) => [keyed?.key, String(data)]),
  )
export const keysOf = list => list.map(({ keyed }) => keyed.key)
