// Reloads of the configuration: SIGHUP, `halley reload`.

import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import WebSocket from 'ws'
import { makeToken } from '../../clients/auth/jwt.js'
import { spawnHalley } from '../../kit/cli.js'
import { fetch } from '../../kit/fetch.js'
import { config, healthy, kept, open } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { request } from '../../kit/uni-poll-client.js'
import { until } from '../../kit/wait.js'

/** Requests and connects that very likely reach every worker. */
const MANY = 12

const reloaded = ({ msg }) => msg === 'configuration reloaded'
const notReloaded = ({ msg }) => msg === 'configuration not reloaded'

async function start(t, given) {
  const gateway = await startGateway(t, given)
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

/** @param {number} port @param {string} key @returns {Promise<number>} HTTP status */
async function api(port, key) {
  // With the node server, a connection may be pending in a killed worker: it is neither answered nor closed.
  const signal = AbortSignal.timeout(5000)
  const options = { method: 'POST', headers: { 'X-API-Key': key }, body: '{}', signal }
  return (await request(`http://127.0.0.1:${port}/api/channels`, options)).status
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

t.test('tokens and channels change together or not at all, even in new workers', async t => {
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
  t.match(refused.reason, /^workers: .*; log\.level: /, 'all faults in one line')
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
  // All workers have applied it when the line is logged.
  const clients = await many(() => connects('new'))
  for (const client of clients) {
    if (!(client instanceof RawClient)) t.fail(`closed with ${client}`)
    else t.match(await client.subscribe('bb:x'), { subscribe: { recoverable: true } })
  }
  t.strictSame(await many(() => connects('old')), Array(MANY).fill(3500))
  t.match(await old.subscribe('aa:x'), { subscribe: {} }, 'clients stay connected, under the new rules')
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

t.test('new keys and origins apply when the reload is logged, old ones are refused', async t => {
  const { gateway, whole, write } = await start(t, {
    ...config,
    log: { level: 'debug' },
    http_api: { key: 'first key of the API' },
    client: { ...config.client, allowed_origins: ['https://old.example'] },
  })
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
    'configuration reloaded: applied: log.level, http_api.key, client.allowed_origins; ' +
      'requires a restart: node.name\n',
  )
  t.strictSame(new Set(await many(() => api(gateway.port, 'second key of the API'))), new Set([200]))
  t.strictSame(new Set(await many(() => api(gateway.port, 'first key of the API'))), new Set([401]))
  t.strictSame(new Set(await many(() => admits(gateway.ws, 'https://new.example'))), new Set([true]))
  t.strictSame(new Set(await many(() => admits(gateway.ws, 'https://old.example'))), new Set([false]))
  const warnings = gateway.lines.filter(({ key }) => key === 'node.name')
  t.equal(warnings.length, 1, 'a key that requires a restart causes one warning')

  await write('{')
  const failed = await spawnHalley(['reload', `${gateway.port}`])
  t.equal(failed.code, 1)
  t.match(failed.err, /^halley reload: configuration not reloaded: .*config\.json: invalid JSON.*\n$/)
})

t.test('reloads are atomic under faults and during restarts', async t => {
  const { gateway, file, whole, write, reload } = await start(t, config)

  t.test('config check and reload refuse a configuration that workers cannot use', async t => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const rsa_public_key = privateKey.export({ type: 'pkcs8', format: 'pem' })
    await write({
      ...whole,
      http_api: { key: 'new' },
      client: { ...whole.client, token: { rsa_public_key } },
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
    t.strictSame(new Set(await many(() => api(gateway.port, 'key'))), new Set([200]), 'the key is unchanged')
    t.equal(await api(gateway.port, 'new'), 401)
    t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died'))
  })

  t.test('many simultaneous reloads end with the newest file while workers die and start', async t => {
    for (let n = 1; n <= 5; n++) {
      await write({ ...whole, http_api: { key: `key ${n}` } })
      gateway.process.kill('SIGHUP')
      if (n === 2) process.kill(gateway.workerPids[1], 'SIGKILL')
    }
    // It completes after all earlier reloads.
    await spawnHalley(['reload', `${gateway.port}`])
    // A connection of the killed worker is closed without a response.
    const status = () => api(gateway.port, 'key 5').catch(() => 0)
    await until(async () => (await many(status)).every(status => status === 200))
    await healthy(gateway)
    t.strictSame(new Set(await many(() => api(gateway.port, 'key 5'))), new Set([200]))
    t.strictSame(new Set(await many(() => api(gateway.port, 'key 4'))), new Set([401]))
    t.equal(gateway.lines.filter(notReloaded).length, 1, 'from the previous test')
  })

  t.test('a key that requires new workers replaces all of them', async t => {
    const before = gateway.workerPids.length
    await write({ ...whole, http_api: { key: 'key 5' }, poll: { enabled: true } })
    t.match(await reload(), { msg: 'configuration reloaded', live: [], new_workers: ['poll.enabled'] })
    // The old workers serve clients until then.
    await gateway.line(({ msg }) => msg === 'rolling restart finished')
    t.equal(gateway.workerPids.length, before + 2)
    const statuses = await many(() => fetch(`${gateway.url}/connection/poll`).then(({ status }) => status))
    t.strictSame(new Set(statuses), new Set([405]), 'the endpoint exists in all of them')
    t.notOk(gateway.lines.some(({ msg, reason }) => msg === 'worker died' && reason !== 'signal SIGKILL'))
  })

  t.test('a reload during shutdown neither changes nor delays anything', async t => {
    await write({ ...whole, http_api: { key: 'new' } })
    gateway.process.kill('SIGTERM')
    gateway.process.kill('SIGHUP')
    t.strictSame(await gateway.exited, { code: 0, signal: null })
  })
})
