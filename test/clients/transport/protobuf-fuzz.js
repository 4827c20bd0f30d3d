// Protobuf frames, right ones and damaged ones, over real sockets: each is answered or closes its own connection with a
// documented code.

import { isUtf8 } from 'node:buffer'
import { startGateway } from '../../kit/gateway.js'
import { commandFrame } from '../protocol/sdk-messages.js'
import { fuzz } from '../session/fuzz/run.js'
import { history, open, tokenClient } from '../session/support.js'
import { ProtobufClient } from './protobuf-client.js'

/** @import { Random } from '../session/fuzz/random.js' */

/** Sent after each frame: its reply shows that the frame has been handled. */
const LAST = 987654321
/** bad request, invalid token, channel limit, too many requests, not available */
const CODES = [3501, 3500, 3505, 3013, 3508]

const recoverable = { ...open, ...history, allow_recovery: true }
const config = {
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  channel: {
    without_namespace: { ...recoverable, allow_tags_filter: true, join_leave: true },
    namespaces: [{ name: 'quiet', ...open }],
  },
}

/** @param {Random} random */
function command(random) {
  const channel = random.pick(['a', 'b', 'c', 'nope:a', '$d', 'é'])
  const data = Buffer.from(random.pick(['1', '{"a":1}', '', '\xff\n', 'x'.repeat(300)]), 'latin1')
  const offset = random.pick([0, 1, 5, 2 ** 40])
  const tf = { op: 'or', nodes: [{ key: 'k', cmp: random.pick(['eq', 'in', 'ex', '']), val: 'v' }] }
  if (random.chance(0.03)) {
    const closing = [{ refresh: { token: 'x' } }, { connect: {} }, { send: { data } }, { presence: {} }, {}]
    return random.pick([...closing, { rpc: {}, ping: {}, id: 0 }])
  }
  return random.pick([
    { subscribe: { channel, recover: random.chance(0.5), offset, epoch: random.pick(['', 'x']), flag: 1 } },
    { subscribe: { channel, positioned: true, recoverable: true, join_leave: true, tf } },
    { unsubscribe: { channel } },
    { publish: { channel, data } },
    { presence: { channel } },
    { presence_stats: { channel } },
    { history: { channel, limit: random.pick([-1, 0, 3]), since: { offset }, reverse: random.chance(0.5) } },
    { rpc: { method: 'm', data } },
    { ping: {}, rpc: { method: 'm' } },
  ])
}

/** @param {Random} random @param {Buffer} frame */
function damage(random, frame) {
  const bytes = Buffer.from(frame)
  for (let n = random.below(3); n >= 0; n--) bytes[random.below(bytes.length)] = random.below(256)
  return random.chance(0.3) ? bytes.subarray(0, random.below(bytes.length + 1)) : bytes
}

/**
 * @param {any} t @param {'uws' | 'node'} driver @param {number} count maximum number of frames
 * @param {number} [most] ms after which no further frame is sent
 */
export async function fuzzProtobuf(t, driver, count, most) {
  const gateway = await startGateway(t, { ...config, http_server: { driver } })
  let closes = 0
  let answered = 0
  const begin = () => {
    /** @type {ProtobufClient | null} */
    let client = null
    return async (/** @type {Random} */ random) => {
      client ??= random.chance(0.9)
        ? await ProtobufClient.connected(gateway.ws)
        : await ProtobufClient.open(gateway.ws)
      const commands = Array.from({ length: 1 + random.below(4) }, (_, i) => ({
        id: i + 1,
        ...command(random),
      }))
      const whole = commandFrame(...commands)
      const input = random.chance(0.4) ? damage(random, whole) : whole
      // Bytes that are not UTF-8 cannot be sent as text; the gateway reads both kinds of frames in the same way.
      client.sendBytes(input, random.chance(0.9) || !isUtf8(input))
      client.send({ id: LAST, rpc: { method: 'last' } })
      await client.next(({ id }) => id === LAST).catch(() => {})
      answered += client.messages.splice(0).length
      if (client.ended === null) return null
      const { code } = client.ended
      client = null
      closes++
      return CODES.includes(code) ? null : { fault: `closed with ${code}`, input }
    }
  }
  const watcher = await ProtobufClient.connected(gateway.ws)
  t.teardown(() => watcher.socket.terminate())
  const frames = await fuzz(t, { gateway, watchers: [watcher], seed: 20261122, count, most, begin })
  t.ok(closes > frames / 10, `${closes} of ${frames} frames closed their connection`)
  t.ok(answered > frames, `${answered} messages came back`)
}
