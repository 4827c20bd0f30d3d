import { createHash } from 'node:crypto'
import { SharedPollRefreshEvent } from '../hooks/events.js'

/** @import { BrokerEvents, PollChange, PollItem, PollResult } from '../../channels/broker/contract.js' */
/** @import { PollAnswer, PollAnswerItem } from '../hooks/contract.js' */
/** @import { WorkerContext } from './context.js' */

/** Bytes of a hash that tells values apart. */
const HASH_BYTES = 16

/** @param {Buffer} data @returns {string} byte string */
const hashOf = data => createHash('sha256').update(data).digest().toString('latin1', 0, HASH_BYTES)

/** @param {WorkerContext} context @returns {NonNullable<BrokerEvents['refresh']>} asks the backend of the channel's namespace */
export function createPollRefresh(context) {
  return (channel, items, all, done) => {
    const namespace = context.rules.resolve(channel)
    const handler = namespace?.handlers.pollRefresh ?? null
    // A reload may have removed the namespace.
    if (namespace === undefined || handler === null) return done(null)
    const versioned = namespace.options.shared_poll.mode === 'versioned'
    const asked = items.map(({ key, version }) => ({ key, version: versioned ? version : 0n }))
    context.hookCalls.ask(
      null,
      handler,
      new SharedPollRefreshEvent(channel, asked, context),
      (error, answer) => {
        if (error) context.log.warn({ channel, reason: error.message }, 'shared poll refresh failed')
        done(error || answer === null ? null : resultOf(context, channel, items, all, versioned, answer))
      },
    )
  }
}

/**
 * @param {WorkerContext} context @param {string} channel @param {PollItem[]} items asked for
 * @param {boolean} all also unchanged ones @param {boolean} versioned @param {PollAnswer} answer
 * @returns {PollResult} changes of keys asked for, each once
 */
function resultOf({ log }, channel, items, all, versioned, { items: given, epoch }) {
  const known = new Map(items.map(item => [item.key, item]))
  /** @type {Map<string, PollChange>} */
  const changes = new Map()
  for (const item of given) {
    const asked = known.get(item.key)
    if (asked === undefined) continue
    if (versioned && !item.removed && item.version === 0n) {
      log.warn({ channel }, 'shared poll refresh: an item without version was ignored, mode is versioned')
      continue
    }
    const change = changeOf(item, versioned)
    const unchanged = versioned ? change.version <= asked.version : change.hash === asked.hash
    if (change.removed || all || !unchanged) changes.set(item.key, change)
  }
  return { changes: [...changes.values()], epoch: versioned ? epoch : '' }
}

const NO_DATA = Buffer.alloc(0)

/** @param {PollAnswerItem} item @param {boolean} versioned @returns {PollChange} */
function changeOf({ key, data: payload, version, removed }, versioned) {
  if (removed) return { key, version: 0n, hash: '', removed, json: true, data: NO_DATA }
  const data = Buffer.from(payload.data)
  const hash = versioned ? '' : hashOf(data)
  return { key, version: versioned ? version : 0n, hash, removed, json: payload.json, data }
}
