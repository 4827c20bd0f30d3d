// Reloads of the configuration: SIGHUP, `halley reload`.

import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rename, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import WebSocket from 'ws'
import { makeToken } from '../../clients/auth/jwt.js'
import { spawnHalley } from '../../kit/cli.js'
import { fetch } from '../../kit/fetch.js'
import { config, healthy, kept, open } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'

/** Requests and connects that find every worker, in all probability. */
const MANY = 12

const reloaded = ({ msg }) => msg === 'configuration reloaded'
const notReloaded = ({ msg }) => msg === 'configuration not reloaded'

/** @param {any} t @param {object} given @param {object} [env] */
async function start(t, given, env = {}) {
  const gateway = await startGateway(t, given, { env })
  const file = join(gateway.folder, 'config.json')
  const whole = JSON.parse(await readFile(file, 'utf8'))
  const count = matches => gateway.lines.filter(matches).length
  return {
    gateway,
    file,
    whole,
    /** Replaces the file at once: a reload may read it at any moment. @param {string | object} change */
    async write(change) {
      await writeFile(`${file}.new`, typeof change === 'string' ? change : JSON.stringify(change))
      await rename(`${file}.new`, file)
    },
    /** Sends SIGHUP and waits for its line. @returns {Promise<any>} the line */
    async reload() {
      const before = count(reloaded) + count(notReloaded)
      gateway.process.kill('SIGHUP')
      await until(() => count(reloaded) + count(notReloaded) > before)
      return gateway.lines.findLast(line => reloaded(line) || notReloaded(line))
    },
  }
}

/** @param {number} port @param {string} key @returns {Promise<number | undefined>} HTTP status */
function api(port, key) {
  return new Promise((resolve, reject) => {
    const headers = { 'X-API-Key': key }
    const options = { host: '127.0.0.1', port, path: '/api/channels', method: 'POST', headers, agent: false }
    const request = http.request(options, answer => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
    })
    request.on('error', reject)
    // With the node server a connection may be on its way to a worker that is killed: nobody answers or closes it.
    request.setTimeout(5000, () => request.destroy(new Error('no answer')))
    request.end('{}')
  })
}

/** @param {string} url @param {string} origin @returns {Promise<boolean>} whether a page of that origin may connect */
async function admits(url, origin) {
  const socket = new WebSocket(url, { origin })
  socket.on('error', () => {})
  const [admitted] = await Promise.race([
    once(socket, 'open').then(() => [true]),
    once(socket, 'unexpected-response').then(() => [false]),
  ])
  socket.terminate()
  return admitted
}

/** @template T @param {() => Promise<T>} ask @returns {Promise<T[]>} */
async function many(ask) {
  const answers = []
  for (let i = 0; i < MANY; i++) answers.push(await ask())
  return answers
}

t.test('tokens and channels: whole or not at all, also for workers to come', async t => {
  const { gateway, whole, write, reload } = await start(t, {
    ...config,
    client: { token: { hmac_secret_key: 'old' } },
    channel: { namespaces: [{ name: 'aa' }] },
  })
  const token = key => makeToken({ sub: 'u' }, key)
  /** @returns {Promise<any>} a client, or the code that closes it */
  const connects = async key => {
    const client = await RawClient.open(gateway.ws)
    client.send({ id: 1, connect: { token: token(key) } })
    const outcome = await Promise.race([
      client.next().then(
        () => 'connected',
        () => null,
      ),
      client.closed,
    ])
    return outcome === 'connected' ? client : (await client.closed).code
  }
  const old = await connects('old')
  t.equal(await connects('new'), 3500)
  t.match((await old.subscribe('aa:x')).error, { code: 103 })
  t.match((await old.subscribe('bb:x')).error, { code: 102 })

  await write('{"workers": "many", "log": {"level": 5}}')
  const refused = await reload()
  t.equal(refused.msg, 'configuration not reloaded')
  t.match(
    refused.reason,
    /^workers: .*; log\.level: /,
    'a bad file changes nothing, and says why in one line',
  )
  t.match((await old.subscribe('bb:x')).error, { code: 102 })

  const changed = {
    ...whole,
    client: { ...whole.client, token: { hmac_secret_key: 'new' } },
    channel: {
      namespaces: [
        { name: 'aa', ...open },
        { name: 'bb', ...open, ...kept },
      ],
    },
  }
  await write(changed)
  t.match(await reload(), {
    msg: 'configuration reloaded',
    live: ['client.token.hmac_secret_key', 'channel.namespaces'],
    new_workers: [],
  })
  // The line says that it is in force, in every worker.
  const clients = await many(() => connects('new'))
  for (const client of clients) {
    if (!(client instanceof RawClient)) t.fail(`closed with ${client}`)
    else t.match(await client.subscribe('bb:x'), { subscribe: { recoverable: true } })
  }
  t.strictSame(await many(() => connects('old')), Array(MANY).fill(3500))
  t.match(await old.subscribe('aa:x'), { subscribe: {} }, 'who is connected stays, under the new rules')
  t.match((await gateway.api('publish', { channel: 'bb:x', data: 1 })).result, { offset: 1 })

  // A reload while a worker starts, and a worker that starts after one.
  process.kill(gateway.workerPids[0], 'SIGKILL')
  await gateway.line(({ msg }) => msg === 'worker died')
  changed.client.token.hmac_secret_key = 'third'
  await write(changed)
  await reload()
  await healthy(gateway)
  for (const client of await many(() => connects('third'))) t.ok(client instanceof RawClient)
  t.strictSame(await many(() => connects('new')), Array(MANY).fill(3500))
})

t.test('rotated keys and origins are in force when the line is logged, the old ones refused', async t => {
  const { gateway, whole, write } = await start(
    t,
    {
      ...config,
      log: { level: 'debug' },
      http_api: { key: 'first key of the API' },
      client: { ...config.client, allowed_origins: ['https://old.example'] },
    },
    {},
  )
  t.ok(await admits(gateway.ws, 'https://old.example'))
  await write({
    ...whole,
    log: { level: 'info' },
    http_api: { key: 'second key of the API' },
    client: { ...whole.client, allowed_origins: ['https://new.example'] },
    node: { name: 'another' },
  })
  const done = await spawnHalley(['reload', `${gateway.port}`])
  t.equal(
    done.out,
    'configuration reloaded: in force: log.level, http_api.key, client.allowed_origins; ' +
      'after a new start: node.name\n',
  )
  t.strictSame(new Set(await many(() => api(gateway.port, 'second key of the API'))), new Set([200]))
  t.strictSame(new Set(await many(() => api(gateway.port, 'first key of the API'))), new Set([401]))
  t.strictSame(new Set(await many(() => admits(gateway.ws, 'https://new.example'))), new Set([true]))
  t.strictSame(new Set(await many(() => admits(gateway.ws, 'https://old.example'))), new Set([false]))
  const warnings = gateway.lines.filter(({ key }) => key === 'node.name')
  t.equal(warnings.length, 1, 'what takes a new start is named in one warning')

  await write('{')
  const failed = await spawnHalley(['reload', `${gateway.port}`])
  t.equal(failed.code, 1)
  t.match(failed.err, /^halley reload: configuration not reloaded: .*config\.json: not valid JSON.*\n$/)
})

t.test('faults, many reloads, new workers, shutdown', async t => {
  const { gateway, file, whole, write, reload } = await start(t, config)

  t.test('what no worker could use is refused by `config check` and by a reload', async t => {
    const pem = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
      type: 'pkcs8',
      format: 'pem',
    })
    await write({
      ...whole,
      http_api: { key: 'new' },
      client: { ...whole.client, token: { rsa_public_key: pem } },
    })
    const check = await spawnHalley(['config', 'check', '-c', file])
    t.equal(check.code, 1)
    t.match(check.err, /client\.token\.rsa_public_key: is a private key/)
    const line = await reload()
    t.match(line, {
      msg: 'configuration not reloaded',
      reason: /^client\.token\.rsa_public_key: is a private key/,
    })
    t.notMatch(JSON.stringify(gateway.lines), 'BEGIN', 'no line shows the key')
    t.strictSame(new Set(await many(() => api(gateway.port, 'key'))), new Set([200]), 'nothing has changed')
    t.equal(await api(gateway.port, 'new'), 401)
    t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died'))
  })

  t.test('many reloads at once end with the newest file, while workers die and start', async t => {
    for (let n = 1; n <= 5; n++) {
      await write({ ...whole, http_api: { key: `key ${n}` } })
      gateway.process.kill('SIGHUP')
      if (n === 2) process.kill(gateway.workerPids[1], 'SIGKILL')
    }
    // Its answer comes after all reloads that were requested before.
    await spawnHalley(['reload', `${gateway.port}`])
    // A connection of the killed worker ends without an answer.
    const status = () => api(gateway.port, 'key 5').catch(() => 0)
    await until(async () => (await many(status)).every(status => status === 200))
    await healthy(gateway)
    t.strictSame(new Set(await many(() => api(gateway.port, 'key 5'))), new Set([200]))
    t.strictSame(new Set(await many(() => api(gateway.port, 'key 4'))), new Set([401]))
    t.equal(gateway.lines.filter(notReloaded).length, 1, 'that of the fault before')
  })

  t.test('a key that takes new workers replaces all of them', async t => {
    const before = gateway.workerPids.length
    await write({ ...whole, http_api: { key: 'key 5' }, poll: { enabled: true } })
    t.match(await reload(), { msg: 'configuration reloaded', live: [], new_workers: ['poll.enabled'] })
    // Until then the old ones still serve clients.
    await gateway.line(({ msg }) => msg === 'rolling restart ended')
    t.equal(gateway.workerPids.length, before + 2)
    const statuses = await many(() => fetch(`${gateway.url}/connection/poll`).then(({ status }) => status))
    t.strictSame(new Set(statuses), new Set([405]), 'the endpoint exists in all of them')
    t.notOk(gateway.lines.some(({ msg, reason }) => msg === 'worker died' && reason !== 'signal SIGKILL'))
  })

  t.test('a reload during the shutdown changes nothing and delays nothing', async t => {
    await write({ ...whole, http_api: { key: 'new' } })
    gateway.process.kill('SIGTERM')
    gateway.process.kill('SIGHUP')
    t.strictSame(await gateway.exited, { code: 0, signal: null })
  })
})
