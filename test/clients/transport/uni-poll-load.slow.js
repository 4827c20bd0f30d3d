// Many concurrent polls.

import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { clients, poll } from '../../kit/uni-poll-client.js'
import { until } from '../../kit/wait.js'
import { history, open } from '../session/support.js'

/** Polls that wait together. */
const CROWD = 800

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(driver, { skip: skipDriver(driver) }, async t => {
    const gateway = await startGateway(t, {
      workers: 3,
      uni_poll: { enabled: true },
      http_server: { driver },
      client: { allow_anonymous_connect_without_token: true },
      channel: {
        without_namespace: { ...open, ...history },
        namespaces: [{ name: 'live', ...open }],
      },
    })

    t.test('many polls that end together are all answered, without delaying others', async t => {
      const polls = Array.from({ length: CROWD }, () => poll(gateway, { channel: 'crowd' }))
      await clients(gateway, 'crowd', CROWD)
      const other = poll(gateway, { channel: 'live:other' })
      await clients(gateway, 'live:other', 1)
      await gateway.api('publish', { channel: 'crowd', data: 'all' })
      await gateway.api('publish', { channel: 'live:other', data: 'one' })
      t.same((await other).data, ['one'])
      const answers = await Promise.all(polls)
      t.same(new Set(answers.map(({ text }) => text)).size, 1)
      t.same(answers[0].data, ['all'])
      const together = Array.from({ length: CROWD }, () => poll(gateway, { channel: 'time', timeout: 1 }))
      const empty = await Promise.all(together)
      t.ok(empty.every(({ status, data }) => status === 200 && data.length === 0))
    })

    t.test('clients that leave while they wait leave no subscriptions', async t => {
      const leaving = new AbortController()
      const channel = ['leave', 'live:leave']
      const polls = Array.from({ length: CROWD / 4 }, () =>
        poll(gateway, { channel }, { signal: leaving.signal }).catch(() => 'left'),
      )
      for (const name of channel) await clients(gateway, name, CROWD / 4)
      leaving.abort()
      t.same(new Set(await Promise.all(polls)), new Set(['left']))
      for (const name of channel) await clients(gateway, name, 0)
      await until(async () => {
        const { num_subs, num_channels } = (await gateway.api('info')).result.nodes[0]
        return num_subs + num_channels === 0
      })
    })

    t.test('a gateway that shuts down answers waiting polls with their cursors', async t => {
      const { cursor } = await poll(gateway, { channel: 'end', timeout: 0 })
      // The response closes a keep-alive connection.
      const headers = { connection: 'keep-alive' }
      const polls = Array.from({ length: CROWD / 4 }, () =>
        poll(gateway, { channel: 'end', cursor }, { headers }),
      )
      await clients(gateway, 'end', CROWD / 4)
      gateway.process.kill('SIGTERM')
      for (const answer of await Promise.all(polls)) {
        if (answer.status === 200 && answer.headers.connection === 'close' && answer.cursor === cursor)
          continue
        t.fail(`${answer.status} ${answer.text}`)
      }
      t.same(await gateway.exited, { code: 0, signal: null })
    })
  })
}
