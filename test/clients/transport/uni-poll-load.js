// Many polls at once, and long accounts of what they got.

import { randomness } from '../../guarantees/account.js'
import { startGateway } from '../../kit/gateway.js'
import { clients, poll } from '../../kit/uni-poll-client.js'
import { pause, until, within } from '../../kit/wait.js'
import { history, open } from '../session/support.js'

const config = (/** @type {string} */ driver) => ({
  workers: 3,
  uni_poll: { enabled: true },
  http_server: { driver },
  client: { allow_anonymous_connect_without_token: true },
  channel: {
    without_namespace: { ...open, ...history, history_size: 5000 },
    namespaces: [{ name: 'live', ...open }],
  },
})

/**
 * Comes back again and again, with pauses of its own, to whichever worker, and keeps what it got.
 */
class Poller {
  /** @type {Record<string, number[]>} channel -> numbers in the order in which they came */
  got
  /** @type {string[]} */
  faults = []
  #cursor = ''
  #random

  /**
   * @param {import('../../kit/gateway.js').TestGateway} gateway
   * @param {string[]} channels
   * @param {number} seed
   */
  constructor(gateway, channels, seed) {
    this.gateway = gateway
    this.channels = channels
    this.got = Object.fromEntries(channels.map(channel => [channel, []]))
    this.#random = randomness(seed)
  }

  /** @param {number} timeout seconds */
  async once(timeout) {
    try {
      const params = { channel: this.channels, cursor: this.#cursor, timeout }
      // Node's cluster may lose a connection that it hands to a worker which dies: nobody answers there.
      const signal = AbortSignal.timeout(timeout * 1000 + 3000)
      const { status, text, body } = await poll(this.gateway, params, { signal })
      if (status !== 200) throw new Error(`${status} ${text}`)
      if (body.lost) this.faults.push(`lost ${body.lost}`)
      for (const { channel, data } of body.publications) this.got[channel].push(data)
      this.#cursor = body.cursor
    } catch (error) {
      // Only connections may end: the cursor is as good as before.
      if (!/ECONN|hang up|aborted/.test(error.message)) this.faults.push(error.message)
      await pause(5)
    }
  }

  /** @returns {Promise<void>} when it has a cursor: it misses nothing from then on */
  async begin() {
    while (this.#cursor === '' && this.faults.length === 0) await this.once(0)
  }

  /** @param {(got: Record<string, number[]>) => boolean} enough */
  until(enough) {
    return within(this.#until(enough), () => `${enough}; got ${JSON.stringify(this.got)}`)
  }

  /** @param {(got: Record<string, number[]>) => boolean} enough */
  async #until(enough) {
    while (!enough(this.got) && this.faults.length === 0) {
      await this.once(this.#random(4) === 0 ? this.#random(100) / 1000 : 2)
      if (this.#random(3) === 0) await pause(this.#random(60))
    }
  }
}

/**
 * @param {any} t
 * @param {'uws' | 'node'} driver
 * @param {{pollers: number, publications: number, crowd: number}} size clients that come and go; publications of each
 *   of their channels; polls that wait together
 */
export async function testLoad(t, driver, { pollers: count, publications: total, crowd }) {
  const gateway = await startGateway(t, config(driver))

  t.test('everything once and in order, over changing workers and through the death of one', async t => {
    const channels = ['exact-a', 'exact-b']
    const pollers = Array.from({ length: count }, (_, i) => new Poller(gateway, channels, i + 1))
    await Promise.all(pollers.map(poller => poller.begin()))
    const all = pollers.map(poller =>
      poller.until(got => channels.every(channel => got[channel].at(-1) === total)),
    )
    const [victim] = gateway.workerPids
    const published = channels.map(async channel => {
      for (let n = 1; n <= total; n++) {
        const request = { channel, data: n, idempotency_key: `${n}` }
        // A publish that dies with its worker has no answer, or waits for one for ever; with its key it is safe to
        // say it again.
        const publish = () => Promise.race([gateway.api('publish', request).catch(() => null), pause(3000)])
        await until(() => publish())
        if (n === total / 2 && channel === 'exact-a') process.kill(victim, 'SIGKILL')
      }
    })
    await Promise.all([...published, ...all])
    const whole = Array.from({ length: total }, (_, i) => i + 1)
    for (const { got, faults } of pollers) {
      t.same(faults, [])
      for (const channel of channels) t.same(got[channel], whole)
    }
    await gateway.line(({ msg }) => msg === 'worker died')
  })

  t.test('many polls that end together are all answered, and nobody else waits for them', async t => {
    const polls = Array.from({ length: crowd }, () => poll(gateway, { channel: 'crowd' }))
    await clients(gateway, 'crowd', crowd)
    const other = poll(gateway, { channel: 'live:other' })
    await clients(gateway, 'live:other', 1)
    await gateway.api('publish', { channel: 'crowd', data: 'all' })
    await gateway.api('publish', { channel: 'live:other', data: 'one' })
    t.same((await other).data, ['one'])
    const answers = await Promise.all(polls)
    t.same(new Set(answers.map(({ text }) => text)).size, 1)
    t.same(answers[0].data, ['all'])
    const together = Array.from({ length: crowd }, () => poll(gateway, { channel: 'time', timeout: 1 }))
    const empty = await Promise.all(together)
    t.ok(empty.every(({ status, data }) => status === 200 && data.length === 0))
  })

  t.test('clients that leave while they wait leave nothing behind', async t => {
    const leaving = new AbortController()
    const channel = ['leave', 'live:leave']
    const polls = Array.from({ length: crowd / 4 }, () =>
      poll(gateway, { channel }, { signal: leaving.signal }).catch(() => 'left'),
    )
    for (const name of channel) await clients(gateway, name, crowd / 4)
    leaving.abort()
    t.same(new Set(await Promise.all(polls)), new Set(['left']))
    for (const name of channel) await clients(gateway, name, 0)
    await until(async () => {
      const { num_subs, num_channels } = (await gateway.api('info')).result.nodes[0]
      return num_subs + num_channels === 0
    })
  })

  t.test('a gateway that shuts down answers those who wait, with their cursors', async t => {
    const { cursor } = await poll(gateway, { channel: 'end', timeout: 0 })
    // Whoever wants to keep the connection is told that it ends.
    const headers = { connection: 'keep-alive' }
    const polls = Array.from({ length: crowd / 4 }, () =>
      poll(gateway, { channel: 'end', cursor }, { headers }),
    )
    await clients(gateway, 'end', crowd / 4)
    gateway.process.kill('SIGTERM')
    for (const answer of await Promise.all(polls)) {
      if (answer.status === 200 && answer.headers.connection === 'close' && answer.cursor === cursor) continue
      t.fail(`${answer.status} ${answer.text}`)
    }
    t.same(await gateway.exited, { code: 0, signal: null })
  })
}
