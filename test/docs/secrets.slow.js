// docs/secrets.md: token key and API key are replaced step by step, without affecting clients and backends.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { makeToken } from '../clients/auth/jwt.js'
import { startGateway } from '../kit/gateway.js'
import { RawClient } from '../kit/raw-client.js'
import { post } from '../kit/stream-client.js'
import { until } from '../kit/wait.js'
import { blockWith, withSecrets } from './blocks.js'

const OLD = 'the-old-secret-of-32-bytes-or-more'
const NEW = 'the-new-secret-of-32-bytes-or-more'

const gateway = await startGateway(t, {
  workers: 2,
  client: { token: { hmac_secret_key: OLD } },
  http_api: { key: OLD },
})

/** Writes the file again and reloads. @param {object} token @param {object} api */
async function reload(token, api) {
  const reloads = () => gateway.lines.filter(({ msg }) => msg.startsWith('configuration reloaded')).length
  const before = reloads()
  const whole = {
    workers: 2,
    health: { enabled: true },
    log: { level: 'debug' },
    overload: { max_tick: '0s' },
    http_server: { address: '127.0.0.1', port: gateway.port },
    http_api: api,
    client: { allowed_origins: ['*'], ping_interval: '10m', token },
  }
  await writeFile(join(gateway.folder, 'config.json'), JSON.stringify(whole))
  gateway.process.kill('SIGHUP')
  await until(() => reloads() > before)
}

/** @param {string} secret @returns {Promise<number>} 0, or the code of the refusal */
async function connect(secret) {
  const client = await RawClient.open(gateway.ws)
  try {
    const { error } = await client.call('connect', { token: makeToken({ sub: '42' }, secret) })
    return error?.code ?? 0
  } catch {
    return (await client.closed).code
  } finally {
    client.socket.terminate()
  }
}

/** @param {string} key @returns {Promise<number>} HTTP status */
const call = async key => (await post(`${gateway.url}/api/info`, '{}', { 'x-api-key': key })).status

/** @param {any} t @param {string} step @param {boolean} old whether the old secrets are accepted @param {boolean} next */
async function step(t, step, old, next) {
  const outcomes = [await connect(OLD), await connect(NEW), await call(OLD), await call(NEW)]
  t.same(outcomes, [old ? 0 : 3500, next ? 0 : 3500, old ? 200 : 401, next ? 200 : 401], step)
}

t.test('the sample is a configuration with both keys', async t => {
  const { client } = JSON.parse(withSecrets(blockWith('docs/secrets.md', 'json', 'hmac_previous_secret_key')))
  t.not(client.token.hmac_secret_key, client.token.hmac_previous_secret_key)
})

t.test('the steps of the page replace all keys without refusing a client', async t => {
  const staying = await RawClient.connected(gateway.ws, { token: makeToken({ sub: '7' }, OLD) })
  t.teardown(() => staying.socket.terminate())
  await step(t, 'before', true, false)
  await reload({ hmac_secret_key: NEW, hmac_previous_secret_key: OLD }, { key: NEW, previous_key: OLD })
  await step(t, 'both', true, true)
  await reload({ hmac_secret_key: NEW }, { key: NEW })
  await step(t, 'after', false, true)
  t.equal(staying.ended, null, 'connected clients stay connected')

  const past = Math.floor(Date.now() / 1000) - 1
  const expired = { hmac_previous_secret_key: OLD, hmac_previous_secret_key_valid_until: past }
  await reload({ hmac_secret_key: NEW, ...expired }, { key: NEW })
  t.equal(await connect(OLD), 3500, 'valid_until has passed')
  await reload({ hmac_secret_key: NEW }, { key: '', previous_key: OLD })
  t.equal(await call(OLD), 401, 'the previous key alone opens nothing')
})
