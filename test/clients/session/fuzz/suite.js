// Generated JSON frames, valid and invalid, over real sockets: the responses follow the protocol.

import { isUtf8 } from 'node:buffer'
import { startGateway } from '../../../kit/gateway.js'
import { RawClient } from '../../../kit/raw-client.js'
import { anonymous, history, open, tokenClient } from '../support.js'
import { generateFrame } from './generator.js'
import { expectations, judge } from './oracle.js'
import { fuzz } from './run.js'

/** Sent after each frame: its reply shows that the frame has been handled. */
const LAST = 987654321
const last = JSON.stringify({ id: LAST, rpc: { method: 'last' } })

const events = { ...open, ...history, join_leave: true, allow_channel_compaction: true }
const config = {
  client: tokenClient({
    allow_anonymous_connect_without_token: true,
    history_max_publication_limit: 10,
  }),
  channel: {
    without_namespace: { ...events, allow_recovery: true, allow_tags_filter: true },
    protobuf_compaction: true,
    namespaces: [
      { name: 'cc', ...events, history_size: 3, force_recovery: true, force_push_join_leave: true },
      { name: 'shut' },
      { name: 'quiet', allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
    ],
  },
}

/**
 * @param {RawClient} client @param {Buffer} frame
 * @returns {Promise<{replies: any[], code: number | undefined}>} answer to the frame
 */
async function exchange(client, frame) {
  // Bytes that are not UTF-8 cannot be sent as text; the gateway reads both kinds of frames in the same way.
  client.socket.send(frame, { binary: !isUtf8(frame) })
  client.sendText(last)
  await client.next(({ id }) => id === LAST).catch(() => {})
  const replies = client.messages.splice(0).filter(({ id, push }) => id !== undefined || push === undefined)
  return { replies: replies.filter(({ id }) => id !== LAST), code: client.ended?.code }
}

/**
 * @param {any} t @param {'uws' | 'node'} driver @param {number} count maximum number of frames
 * @param {number} [most] ms after which no further frame is sent
 */
export async function fuzzJson(t, driver, count, most) {
  const gateway = await startGateway(t, { ...config, http_server: { driver } })
  let closes = 0
  let answered = 0
  const begin = () => {
    /** @type {RawClient | null} */
    let client = null
    return async (/** @type {import('./random.js').Random} */ random) => {
      const connected = client !== null || random.chance(0.8)
      client ??= connected ? await RawClient.connected(gateway.ws) : await RawClient.open(gateway.ws)
      const input = generateFrame(random, connected)
      const { replies, code } = await exchange(client, input)
      answered += replies.length
      if (code !== undefined) {
        closes++
        client = null
      }
      const fault = judge(expectations(input, connected), replies, code)
      return fault === '' ? null : { fault, input }
    }
  }
  const watchers = [await anonymous(t, gateway)]
  const frames = await fuzz(t, { gateway, watchers, seed: 20261121, count, most, begin })
  t.ok(closes > frames / 10, `${closes} of ${frames} frames closed their connection`)
  t.ok(answered > frames, `${answered} commands were answered`)
}
