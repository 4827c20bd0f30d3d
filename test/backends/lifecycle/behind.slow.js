// A stopped primary: a worker drops lifecycle events beyond its limit, and the log records their number.

import { join } from 'node:path'
import t from 'tap'
import { makeToken } from '../../clients/auth/jwt.js'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { readLog } from './book.js'

const SECRET = 'secret of the tests'
/** Their long user ids exceed the 4 MiB buffer of a worker plus the socket buffers. */
const CLIENTS = 800
const USER = 'u'.repeat(8000)

t.test('every event is logged or counted as dropped', async t => {
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
  const droppedOf = records => records.filter(({ type }) => type === 'dropped')
  // No later event triggers the report.
  await until(
    () => droppedOf(readLog(path)).length > 0,
    () => 'the number of dropped events',
  )
  await gateway.line(({ msg, worker }) => msg === 'worker dropped lifecycle events' && worker === 0)
  for (const client of clients) await client.close()
  await gateway.stop()
  const records = readLog(path)
  const dropped = droppedOf(records)
  t.match(dropped, [{ reason: 'worker_behind', worker: 0, events: Number, since: Number, until: Number }])
  for (const { since, until: end } of dropped) t.ok(since <= end)
  const sum = dropped.reduce((total, { events }) => total + events, 0)
  const logged = records.filter(({ client, logged_by }) => client !== undefined && logged_by === undefined)
  t.equal(logged.length + sum, 2 * CLIENTS)
})
