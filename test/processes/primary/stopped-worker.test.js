// A worker that is stopped, but not dead.

import t from 'tap'
import { ApiLine, config, crowd, health, healthy } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { pause, until } from '../../kit/wait.js'

t.test('a stopped worker that is not replaced does not block others', async t => {
  const gateway = await startGateway(t, { ...config, worker: { liveness_timeout: 0 } })
  const clients = await crowd(gateway)
  // API connections from before the stop, on either worker.
  const lines = Array.from({ length: 12 }, () => new ApiLine(gateway.url))
  await Promise.all(lines.map(line => line.call('info', {})))
  t.teardown(() => {
    for (const line of lines) line.close()
  })
  process.kill(gateway.workerPids[0], 'SIGSTOP')
  t.teardown(() => process.kill(gateway.workerPids[0], 'SIGCONT'))

  const alive = []
  const replies = clients.map(async client => {
    await client.subscribe('news')
    alive.push(client)
  })
  const api = await Promise.any(
    lines.map(line => line.call('publish', { channel: 'other', data: 0 }).then(() => line)),
  )
  await Promise.any(replies)
  const from = (await api.call('history', { channel: 'news' })).result.offset
  // Later connections may reach the stopped worker.
  const listening = [...alive]
  for (let n = 1; n <= 50; n++) await api.call('publish', { channel: 'news', data: n })
  t.equal((await api.call('history', { channel: 'news', limit: -1 })).result.publications.length, from + 50)
  for (const client of listening) {
    await client.next(({ push }) => push?.pub?.data === 50)
  }
  t.ok(alive.length < clients.length, `${alive.length} of ${clients.length} stay connected`)
  const answer = await api.call('channels', {})
  t.match(answer, { error: { code: 100 } }, 'a call to all workers fails: one does not respond')

  process.kill(gateway.workerPids[0], 'SIGCONT')
  await Promise.all(replies)
  t.match((await api.call('channels', {})).result.channels, { news: { num_clients: clients.length } })
})

t.test('/health reports an unresponsive worker before it is replaced', async t => {
  const gateway = await startGateway(t, { ...config, worker: { liveness_timeout: 0 } })
  await healthy(gateway)
  const [stopped] = gateway.workerPids
  process.kill(stopped, 'SIGSTOP')
  t.teardown(() => process.kill(stopped, 'SIGCONT'))
  // Connections that the stopped worker accepts get no response.
  await until(() =>
    Promise.race([...Array.from({ length: 8 }, () => health(gateway)), pause(200)]).then(
      code => code === 503,
    ),
  )
  process.kill(stopped, 'SIGCONT')
  await healthy(gateway)
  t.equal(gateway.lines.filter(({ msg }) => msg === 'worker died').length, 0)
})
