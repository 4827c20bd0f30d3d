// The gateway object of a program, which reads a file, forks workers of its own, or is one of the command line.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { embed } from '../../backends/api/methods-suite.js'
import { testdir } from '../../kit/folders.js'
import { freePort } from '../../kit/ports.js'
import { event } from './gateway-events.js'

const library = new URL('../../../src/index.js', import.meta.url).href

/**
 * Runs a program to its end.
 * @param {any} t @param {string} source @param {string[]} [flags]
 */
async function run(t, source, flags = []) {
  const file = join(testdir(t), 'program.mjs')
  await writeFile(file, source)
  const args = flags.includes('-e') ? [...flags, source] : [...flags, file]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [out, error, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  return { code, lines: out.trim().split('\n'), error }
}

t.test('reload: of a file, or of a new configuration; one that is wrong changes nothing', async t => {
  const port = await freePort()
  const tree = (/** @type {object} */ more) => ({
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
  t.match(await gateway.reload(), /in force: channel\.without_namespace/)
  t.match(await reloaded, /in force/)
  t.match(await gateway.history('a'), { offset: 0 })

  // A refused one and a good one at the same time.
  const [refused, taken] = await Promise.allSettled([
    gateway.reload({ chanel: {} }),
    gateway.reload({ client: { channel_limit: 7 } }),
  ])
  t.equal(refused.status, 'rejected')
  t.match(taken, { value: /in force: client\.channel_limit/ })
  t.equal(await gateway.reload(), 'nothing has changed')
})

t.test('a program that forks cluster workers of its own goes on working', async t => {
  const port = await freePort()
  const { lines, code, error } = await run(
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

t.test('without options it is the development profile, also for a program of the command line', async t => {
  // Its port is always 8000, which may be taken: then it says so.
  const { lines } = await run(
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

t.test('in a worker thread; its calls are in the metrics', async t => {
  const { lines, error, code } = await run(
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
      for (;;) {
        const metrics = await (await fetch(gateway.url + '/metrics')).text()
        if (metrics.includes(wanted)) break
      }
      await gateway.stop()
      console.log('stopped')
    }`,
  )
  t.equal(error, '')
  t.same(lines, ['107', 'stopped'])
  t.equal(code, 0)
})
