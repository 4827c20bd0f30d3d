// A program that embeds a gateway: its stop lets consumers finish and acknowledge what they have taken.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../../kit/ports.js'
import { RawClient } from '../../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'

needsRedis(t)

const library = new URL('../../../../src/index.js', import.meta.url).href
const PROGRAM = `
import { createGateway } from ${JSON.stringify(library)}
const gateway = await createGateway({ config: JSON.parse(process.argv[2]) })
process.stdin.on('end', async () => {
  await gateway.stop()
  process.stdin.destroy()
}).resume()
console.log(gateway.url)
`
const ENTRIES = 5000

t.test('stop() of an embedded gateway acknowledges what its consumer has taken', async t => {
  const redis = await startRedis(t)
  const program = join(t.testdir(), 'program.mjs')
  await writeFile(program, PROGRAM)
  const config = {
    workers: 1,
    http_server: { address: '127.0.0.1', port: await freePort() },
    client: { insecure: true, allowed_origins: ['*'] },
    log: { level: 'error' },
    consumers: [
      {
        name: 'jobs',
        enabled: true,
        type: 'redis_stream',
        redis_stream: { address: redis.address, streams: ['jobs'], consumer_group: 'group' },
      },
    ],
  }
  const child = spawn(process.execPath, [program, JSON.stringify(config)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const [line] = await once(child.stdout, 'data')
  const client = await RawClient.connected(
    `${String(line).trim().replace('http', 'ws')}/connection/websocket`,
  )
  await client.subscribe('c')
  await redis.call(
    'EVAL',
    `for x = 0, ${ENTRIES - 1} do redis.call('XADD', 'jobs', '*', 'method', 'publish', 'payload',
      '{"channel":"c","data":' .. x .. '}') end`,
    '0',
  )
  const values = () => client.messages.flatMap(({ push }) => (push?.pub ? [push.pub.data] : []))
  await until(() => values().length > 0)
  child.stdin.end()
  t.same(await exited, [0, null])
  const [group] = await redis.call('XINFO', 'GROUPS', 'jobs')
  const at = (/** @type {string} */ name) => Number(group[group.indexOf(name) + 1])
  t.equal(at('pending'), 0, 'all that was read is acknowledged')
  t.equal(at('consumers'), 0, 'it has left the group')
  t.equal(
    values().length,
    at('entries-read'),
    'the client had all that is acknowledged, before it was let go',
  )
  t.same(
    values(),
    Array.from({ length: values().length }, (_, i) => i),
    'the client had them in order, without a gap',
  )
})
