// Embedding programs that read a file, fork their own workers, or run from the command line (`node -e`).

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { embed } from '../../backends/api/methods-suite.js'
import { testdir } from '../../kit/folders.js'
import { freePort } from '../../kit/ports.js'
import { run } from '../../kit/programs.js'
import { event } from './gateway-events.js'

const library = new URL('../../../src/index.js', import.meta.url).href

/** Runs a program until it exits. */
async function runSource(t, source, flags = []) {
  const file = join(testdir(t), 'program.mjs')
  await writeFile(file, source)
  const { code, stdout, stderr } = await run(t, process.execPath, [
    ...flags,
    flags.includes('-e') ? source : file,
  ])
  return { code, lines: stdout.trim().split('\n'), error: stderr }
}

t.test('reloads a file or a new configuration; an invalid one changes nothing', async t => {
  const port = await freePort()
  const tree = more => ({
    workers: 1,
    log: { level: 'none' },
    stats: { socket: 'none' },
    http_server: { address: '127.0.0.1', port },
    ...more,
  })
  const file = join(testdir(t), 'gateway.json')
  await writeFile(file, JSON.stringify(tree({})))
  const gateway = await embed(t, {}, { file, config: undefined })
  await t.rejects(gateway.history('a'), { code: 108 })
  const reloaded = event(gateway, 'reloaded')
  await writeFile(
    file,
    JSON.stringify(tree({ channel: { without_namespace: { history_size: 5, history_ttl: '1m' } } })),
  )
  t.match(await gateway.reload(), /applied: channel\.without_namespace/)
  t.match(await reloaded, /applied/)
  t.match(await gateway.history('a'), { offset: 0 })

  // An invalid and a valid one at the same time.
  const [refused, taken] = await Promise.allSettled([
    gateway.reload({ chanel: {} }),
    gateway.reload({ client: { channel_limit: 7 } }),
  ])
  t.equal(refused.status, 'rejected')
  t.match(taken, { value: /applied: client\.channel_limit/ })
  t.equal(await gateway.reload(), 'no changes')
})

t.test('a program may fork its own cluster workers', async t => {
  const port = await freePort()
  const { lines, code, error } = await runSource(
    t,
    `import cluster from 'node:cluster'
    import { createGateway } from ${JSON.stringify(library)}
    const config = { workers: 1, log: { level: 'none' }, stats: { socket: 'none' },
      http_server: { address: '127.0.0.1', port: ${port} } }
    if (cluster.isPrimary) {
      cluster.setupPrimary({ args: ['of the program'] })
      const settings = JSON.stringify(cluster.settings)
      const gateway = await createGateway({ config })
      console.log(JSON.stringify(cluster.settings) === settings)
      console.log(Object.values(cluster.workers).map(worker => gateway.owns(worker)).join())
      const own = cluster.fork()
      own.on('message', async message => {
        console.log(message)
        console.log(gateway.owns(own))
        await gateway.stop()
        own.disconnect()
      })
    } else {
      const refused = await createGateway({ config }).catch(error => error.message)
      process.send(process.argv[2] + ': ' + refused)
    }`,
  )
  t.equal(error, '')
  t.same(lines, [
    'true',
    'true',
    'of the program: createGateway: this process is a worker of node:cluster and cannot fork; start the gateway in ' +
      'its primary',
    'false',
  ])
  t.equal(code, 0)
})

t.test('without options, the development profile is used, even in an eval program', async t => {
  // The port is always 8000; if it is in use, an error is expected.
  const { lines } = await runSource(
    t,
    `import { createGateway } from ${JSON.stringify(library)}
    try {
      const gateway = await createGateway()
      console.log(gateway.url, await gateway.publish('demo:a', 1).then(({ offset }) => offset))
      console.log((await fetch(gateway.url)).status)
      await gateway.stop()
    } catch (error) {
      console.log(error.message)
    }`,
    ['--input-type=module', '-e'],
  )
  const said = lines.filter(line => !line.startsWith('{'))
  if (said.length === 1) t.match(said[0], /cannot listen on 127\.0\.0\.1:8000: EADDRINUSE/)
  else t.same(said, ['http://127.0.0.1:8000 1', '200'])
})

t.test('runs in a worker thread, and its calls count in the metrics', async t => {
  const { lines, error, code } = await runSource(
    t,
    `import { isMainThread, Worker } from 'node:worker_threads'
    import { createGateway } from ${JSON.stringify(library)}
    if (isMainThread) new Worker(new URL(import.meta.url))
    else {
      const gateway = await createGateway({
        config: {
          workers: 1,
          log: { level: 'none' },
          stats: { socket: 'none' },
          prometheus: { enabled: true },
          http_server: { address: '127.0.0.1', port: ${await freePort()} },
        },
      })
      await gateway.publish('news', 1)
      await gateway.publish('', 1).catch(({ code }) => console.log(code))
      const wanted = 'halley_api_calls_total{method="publish"} 2'
      let metrics = ''
      while (!metrics.includes(wanted)) metrics = await (await fetch(gateway.url + '/metrics')).text()
      await gateway.stop()
      console.log('stopped')
    }`,
  )
  t.equal(error, '')
  t.same(lines, ['107', 'stopped'])
  t.equal(code, 0)
})
