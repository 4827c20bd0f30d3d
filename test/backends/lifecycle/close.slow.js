// Closing the log after the death of a worker whose clients fill the queue of a sink.

import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import t from 'tap'
import { LifecycleLog } from '../../../src/backends/lifecycle/index.js'
import { loadConfig } from '../../../src/config/load.js'
import { until } from '../../kit/wait.js'
import { Endpoint } from './endpoint.js'

t.test('a backend that does not respond delays the exit by seconds only', async t => {
  const endpoint = await Endpoint.start(t)
  endpoint.answer = () => null
  const { config } = loadConfig({
    base: {
      lifecycle: {
        queue_max_bytes: 65536,
        webhook: { url: endpoint.url, secret: 'hush', timeout: '1h' },
      },
    },
  })
  const node = { uid: 'a', name: 'a', version: '', startedAt: 0 }
  const lifecycle = await LifecycleLog.open(config, node, pino({ level: 'silent' }))
  const pipe = new PassThrough()
  lifecycle?.attach(pipe, 0, Promise.resolve({ clean: false }))
  for (let n = 0; n < 1000; n++) pipe.write(`["c",1,"client-${n}","anna","sse"]\n`)
  await until(() => lifecycle?.figures.journal.clients === 1000)
  pipe.destroy()
  await lifecycle?.close()
  t.equal(lifecycle?.figures.journal.clients, 0)
  t.ok((lifecycle?.figures.sinks.webhook.dropped.shutdown ?? 0) > 0)
})
