// Runs messages of one source in their order. Publications of different channels run at the same time. A publication of
// a channel that is still busy waits, and all after it with it; any other command waits for all before it.

/** @import { Message, Outcome } from './consumer-contract.js' */

/**
 * @param {Message} message in command mode
 * @returns {string | null} the channel of a publication; null: another command, or a bad one
 */
function channelOf({ method, payload }) {
  if (method !== '' && method !== 'publish') return null
  if (payload === null) return null
  try {
    let request = JSON.parse(payload.toString())
    if (method === '') {
      if (request?.method !== 'publish') return null
      request = request.payload
      if (typeof request === 'string') request = JSON.parse(request)
    }
    return typeof request?.channel === 'string' && request.channel !== '' ? request.channel : null
  } catch {
    return null
  }
}

/**
 * @template {Message} T
 * @param {readonly T[]} messages
 * @param {(message: T) => Promise<Outcome>} handle never rejects
 * @param {() => boolean} ended asked before each message; true: no more messages begin
 * @returns {Promise<{finished: T[], failed: boolean}>} finished: messages that are done or skipped, in their order.
 *   failed: a message is to be tried again; after its failure no other message began
 */
export async function runInOrder(messages, handle, ended) {
  /** @type {Map<string, Promise<void>>} the last publication of each channel, while it runs */
  const running = new Map()
  /** @type {boolean[]} */
  const finished = new Array(messages.length).fill(false)
  let failed = false
  /** @param {number} index */
  const run = async index => {
    if ((await handle(messages[index])) === 'retry') failed = true
    else finished[index] = true
  }
  for (let i = 0; i < messages.length && !failed && !ended(); i++) {
    const channel = channelOf(messages[i])
    if (channel === null) {
      await Promise.all(running.values())
      running.clear()
      if (failed || ended()) break
      await run(i)
      continue
    }
    const before = running.get(channel)
    if (before !== undefined) {
      await before
      if (failed || ended()) break
    }
    running.set(channel, run(i))
  }
  await Promise.all(running.values())
  return { finished: messages.filter((_, i) => finished[i]), failed }
}
