// Workers are killed while clients connect and disconnect: the log matches the records of the clients.

import { join } from 'node:path'
import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { byClient, faultsOf, readLog } from './book.js'
import { Churn, config } from './churn.js'
import { Endpoint } from './endpoint.js'

const KILLS = 4
const CLIENTS = 60

for (const driver of drivers) {
  t.test(`a killed worker's clients are all logged (${driver})`, async t => {
    const path = join(testdir(t), 'clients.log')
    const endpoint = await Endpoint.start(t)
    const gateway = await startGateway(t, {
      ...config,
      workers: 3,
      http_server: { driver },
      lifecycle: { file: { path }, webhook: { url: endpoint.url, secret: 'hush', batch_size: 1000 } },
    })
    const churn = new Churn(t, [gateway.ws], CLIENTS)
    const alive = new Set(gateway.workerPids)
    for (let kill = 0; kill < KILLS; kill++) {
      const connected = churn.size
      await until(() => churn.size >= connected + 2 * CLIENTS)
      const [pid] = alive
      alive.delete(pid)
      process.kill(pid, 'SIGKILL')
      await until(() => gateway.workerPids.length > 3 + kill)
      for (const next of gateway.workerPids.slice(3 + kill)) alive.add(next)
    }
    await churn.stop()
    await gateway.stop()

    const records = readLog(path)
    const known = churn.book.get(gateway.ws) ?? new Set()
    t.ok(known.size > KILLS * CLIENTS, `${known.size} clients`)
    t.same(faultsOf(records, known).slice(0, 5), [], 'each has one connect and one disconnect')
    const ends = [...byClient(records, 'disconnected').values()].flat()
    const died = ends.filter(({ reason }) => reason === 'worker died')
    t.ok(died.length > 0, `${died.length} were connected to a killed worker`)
    for (const { channels } of died) t.equal(new Set(channels).size, channels.length)
    t.same(
      records.filter(({ type }) => type === 'dropped'),
      [],
    )
    const posted = endpoint.batches.flatMap(({ events }) => events)
    t.same(faultsOf(posted, known, { once: false }).slice(0, 5), [], 'at the webhook, too')
  })
}
