// Generated frames, right and wrong ones, over real sockets: each is answered as the protocol says, no worker dies, and
// nobody else notices. A failure prints the seed and the frame; HALLEY_FUZZ_SEED sets another seed.

import { isUtf8 } from 'node:buffer'
import { startGateway } from '../../../kit/gateway.js'
import { RawClient } from '../../../kit/raw-client.js'
import { anonymous, history, open, tokenClient } from '../support.js'
import { generateFrame } from './generator.js'
import { expectations, judge } from './oracle.js'
import { Random } from './random.js'

const AT_ONCE = 8
const SEED = Number(process.env.HALLEY_FUZZ_SEED ?? 20261121)

/** Behind each frame, to know that it has been handled. */
const LAST = 987654321
const last = JSON.stringify({ id: LAST, rpc: { method: 'last' } })

const config = {
  client: tokenClient({
    allow_anonymous_connect_without_token: true,
    history_max_publication_limit: 10,
  }),
  channel: {
    without_namespace: {
      ...open,
      ...history,
      allow_recovery: true,
      allow_tags_filter: true,
      join_leave: true,
    },
    namespaces: [
      {
        name: 'cc',
        ...open,
        ...history,
        history_size: 3,
        force_recovery: true,
        force_push_join_leave: true,
        join_leave: true,
      },
      { name: 'shut' },
      { name: 'quiet', allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
    ],
  },
}

/**
 * @param {RawClient} client
 * @param {Buffer} frame
 * @returns {Promise<{replies: any[], code: number | undefined}>} what came back for a frame
 */
async function exchange(client, frame) {
  // Bytes that are no text could not be sent as such; both kinds of frames are read alike.
  client.socket.send(frame, { binary: !isUtf8(frame) })
  client.sendText(last)
  await client.next(({ id }) => id === LAST).catch(() => {})
  const replies = client.messages.splice(0).filter(({ id, push }) => id !== undefined || push === undefined)
  return { replies: replies.filter(({ id }) => id !== LAST), code: client.ended?.code }
}

/**
 * @param {any} t
 * @param {'uws' | 'node'} driver
 * @param {number} count of frames, at most
 * @param {number} [most] ms after which no further frame is sent
 */
export async function fuzzJson(t, driver, count, most = Infinity) {
  const gateway = await startGateway(t, { ...config, http_server: { driver } })
  const watcher = await anonymous(t, gateway)
  await watcher.subscribe('quiet:x')
  let published = 0

  const end = Date.now() + most
  t.comment(`seed ${SEED}`)
  let frames = 0
  let closes = 0
  let answered = 0
  /** @param {number} seed */
  async function fuzz(seed) {
    const random = new Random(seed)
    /** @type {RawClient | null} */
    let client = null
    while (frames < count && Date.now() < end) {
      frames++
      const connected = client !== null || random.chance(0.8)
      client ??= connected ? await RawClient.connected(gateway.ws) : await RawClient.open(gateway.ws)
      const frame = generateFrame(random, connected)
      const expected = expectations(frame, connected)
      const { replies, code } = await exchange(client, frame)
      const fault = judge(expected, replies, code)
      if (fault) return t.fail(`${fault}`, { seed, frame: frame.toString() })
      answered += replies.length
      if (seed === SEED) await gateway.api('publish', { channel: 'quiet:x', data: ++published })
      if (code !== undefined) {
        closes++
        client = null
      }
    }
    client?.socket.terminate()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => fuzz(SEED + i)))
  t.ok(closes > frames / 10, `${closes} of ${frames} frames closed their connection`)
  t.ok(answered > frames, `${answered} commands were answered`)

  for (let n = 1; n <= published; n++) {
    const { pub } = await watcher.push('pub')
    if (pub.data !== n) return t.fail(`${pub.data} instead of ${n} was delivered`)
  }
  t.ok(published > 0, `${published} publications reached somebody else meanwhile`)
  t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died'))
  t.strictSame(
    gateway.lines.filter(({ level }) => level >= 50),
    [],
    'nothing was logged as an error',
  )
}
