// Protobuf frames, right ones and damaged ones, over real sockets: each is answered or closes its own connection with
// a documented code, no worker dies, and nobody else notices. A failure prints the seed and the frame.

import { isUtf8 } from 'node:buffer'
import { startGateway } from '../../kit/gateway.js'
import { commandFrame } from '../protocol/sdk-messages.js'
import { Random } from '../session/fuzz/random.js'
import { history, open, tokenClient } from '../session/support.js'
import { ProtobufClient } from './protobuf-client.js'

const AT_ONCE = 8
const SEED = Number(process.env.HALLEY_FUZZ_SEED ?? 20261122)

/** Behind each frame, to know that it has been handled. */
const LAST = 987654321
/** bad request, invalid token, channel limit, too many requests, not available */
const CODES = [3501, 3500, 3505, 3013, 3508]

const config = {
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  channel: {
    without_namespace: {
      ...open,
      ...history,
      allow_recovery: true,
      allow_tags_filter: true,
      join_leave: true,
    },
    namespaces: [{ name: 'quiet', ...open }],
  },
}

/** @param {Random} random */
function command(random) {
  const channel = random.pick(['a', 'b', 'c', 'nope:a', '$d', 'é'])
  const data = Buffer.from(random.pick(['1', '{"a":1}', '', '\xff\n', 'x'.repeat(300)]), 'latin1')
  const offset = random.pick([0, 1, 5, 2 ** 40])
  const tf = { op: 'or', nodes: [{ key: 'k', cmp: random.pick(['eq', 'in', 'ex', '']), val: 'v' }] }
  const closing = [
    { refresh: { token: 'x' } },
    { connect: {} },
    { send: { data } },
    { rpc: {}, ping: {}, id: 0 },
    {},
  ]
  if (random.chance(0.03)) return random.pick([...closing, { presence: {} }])
  return random.pick([
    { subscribe: { channel, recover: random.chance(0.5), offset, epoch: random.pick(['', 'x']), flag: 1 } },
    { subscribe: { channel, positioned: true, recoverable: true, join_leave: true, tf } },
    { unsubscribe: { channel } },
    { publish: { channel, data } },
    { presence: { channel } },
    { presence_stats: { channel } },
    {
      history: {
        channel,
        limit: random.pick([-1, 0, 3]),
        since: { offset, epoch: '' },
        reverse: random.chance(0.5),
      },
    },
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
 * @param {any} t
 * @param {'uws' | 'node'} driver
 * @param {number} count of frames, at most
 * @param {number} [most] ms after which no further frame is sent
 */
export async function fuzzProtobuf(t, driver, count, most = Infinity) {
  const gateway = await startGateway(t, { ...config, http_server: { driver } })
  const watcher = await ProtobufClient.connected(gateway.ws)
  t.teardown(() => watcher.socket.terminate())
  await watcher.call('subscribe', { channel: 'quiet:x' })
  let published = 0

  const end = Date.now() + most
  t.comment(`seed ${SEED}`)
  let frames = 0
  let closes = 0
  let answered = 0
  /** @param {number} seed */
  async function fuzz(seed) {
    const random = new Random(seed)
    /** @type {ProtobufClient | null} */
    let client = null
    while (frames < count && Date.now() < end) {
      frames++
      client ??= random.chance(0.9)
        ? await ProtobufClient.connected(gateway.ws)
        : await ProtobufClient.open(gateway.ws)
      const commands = Array.from({ length: 1 + random.below(4) }, (_, i) => ({
        id: i + 1,
        ...command(random),
      }))
      const whole = commandFrame(...commands)
      const frame = random.chance(0.4) ? damage(random, whole) : whole
      // Bytes that are no text may not be sent as such; both kinds of frames are read alike.
      client.sendBytes(frame, random.chance(0.9) || !isUtf8(frame))
      client.send({ id: LAST, rpc: { method: 'last' } })
      await client.next(({ id }) => id === LAST).catch(() => {})
      answered += client.messages.splice(0).length
      if (seed === SEED) await gateway.api('publish', { channel: 'quiet:x', data: ++published })
      if (client.ended === null) continue
      const { code } = client.ended
      if (!CODES.includes(code)) return t.fail(`closed with ${code}`, { seed, frame: frame.toString('hex') })
      closes++
      client = null
    }
    client?.socket.terminate()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => fuzz(SEED + i)))
  t.ok(closes > frames / 10, `${closes} of ${frames} frames closed their connection`)
  t.ok(answered > frames, `${answered} messages came back`)

  for (let n = 1; n <= published; n++) {
    const { pub } = await watcher.push('pub')
    if (pub.data.toString() !== `${n}`) return t.fail(`${pub.data} instead of ${n} was delivered`)
  }
  t.ok(published > 0, `${published} publications reached somebody else meanwhile`)
  t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died'))
  t.strictSame(
    gateway.lines.filter(({ level }) => level >= 50),
    [],
    'nothing was logged as an error',
  )
}
