// A primary that does not read: a worker drops events of the lifecycle log within its bound, and the log counts them.

import { join } from 'node:path'
import t from 'tap'
import { makeToken } from '../../clients/auth/jwt.js'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { readLog } from './book.js'

const SECRET = 'secret of the tests'
/** With their long user ids more than a worker keeps, 4 MiB, and the kernel beside it. */
const CLIENTS = 800
const USER = 'u'.repeat(8000)

t.test('every event is in the log, or in the number of those that are not', async t => {
  const path = join(testdir(t), 'clients.log')
  const gateway = await startGateway(t, {
    workers: 1,
    lifecycle: { file: { path } },
    client: { token: { hmac_secret_key: SECRET }, stale_close_delay: '5m' },
  })
  const token = makeToken({ sub: USER }, SECRET)
  // Not every socket server accepts connections without the primary.
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => RawClient.open(gateway.ws)))
  gateway.process.kill('SIGSTOP')
  try {
    for (const client of clients) await client.login({ token })
  } finally {
    gateway.process.kill('SIGCONT')
  }
  const droppedOf = (/** @type {any[]} */ records) => records.filter(({ type }) => type === 'dropped')
  // There is no later event, with which it could be told.
  await until(
    () => droppedOf(readLog(path)).length > 0,
    () => 'the number of dropped events',
  )
  await gateway.line(({ msg, worker }) => msg === 'a worker has dropped lifecycle events' && worker === 0)
  for (const client of clients) await client.close()
  await gateway.stop()
  const records = readLog(path)
  const dropped = droppedOf(records)
  t.match(dropped, [{ reason: 'worker_behind', worker: 0, events: Number, since: Number, until: Number }])
  for (const { since, until: end } of dropped) t.ok(since <= end)
  const sum = dropped.reduce((total, { events }) => total + events, 0)
  const told = records.filter(({ client, logged_by }) => client !== undefined && logged_by === undefined)
  t.equal(told.length + sum, 2 * CLIENTS)
})
