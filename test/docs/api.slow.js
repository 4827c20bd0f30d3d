// The examples of docs/openapi.yaml, which docs/api.md shows, on a gateway: every request is answered as they say, and
// every answer is what the schema says, errors too.

import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { parse } from 'yaml'
import { operations } from '../../scripts/api-page.js'
import { makeToken } from '../clients/auth/jwt.js'
import { fetch } from '../kit/fetch.js'
import { startGateway } from '../kit/gateway.js'
import { RawClient } from '../kit/raw-client.js'
import { blockWith, withSecrets } from './blocks.js'

const document = parse(readFileSync(new URL('../../docs/openapi.yaml', import.meta.url), 'utf8'))
const config = JSON.parse(withSecrets(blockWith('docs/api.md', 'json', 'http_api')))
const { key } = config.http_api
// Of docs/shared-poll.md.
config.shared_poll = { hmac_secret_key: 'a secret of the tests, long enough' }
config.channel.proxy = { shared_poll_refresh: { endpoint: 'http://127.0.0.1:1/refresh' } }
const direct = { mode: 'versioned', publish_enabled: true }
config.user_status = { enabled: true }
config.channel.namespaces.push({ name: 'scores', subscription_type: 'shared_poll', shared_poll: direct })

const ajv = new Ajv2020({ strict: false, formats: { base64: true, int32: true } })
ajv.addSchema({ $id: 'api', components: document.components })

function fits(t, schema, answer, what) {
  const text = JSON.stringify(schema).replaceAll('"#/', '"api#/')
  const validate = ajv.compile(JSON.parse(text))
  t.ok(validate(answer), `${what}: ${JSON.stringify(answer)} ${JSON.stringify(validate.errors)}`)
}

/** Objects whose names are those of clients, channels and metrics. */
const BY_NAME = ['presence', 'channels', 'items', 'answers', 'connections']

/**
 * @param {any} t @param {any} example @param {any} answer with the same members of the same types, maybe more
 * @param {string} where
 */
function resembles(t, example, answer, where) {
  if (typeof example !== 'object' || example === null) return t.type(answer, typeof example, where)
  if (Array.isArray(example)) {
    t.equal(answer?.length, example.length, where)
    for (const [i, each] of example.entries()) resembles(t, each, answer[i], `${where}[${i}]`)
    return
  }
  const byName = BY_NAME.some(name => where.endsWith(`.${name}`))
  for (const [name, value] of Object.entries(example)) {
    const own = byName ? Object.values(answer)[0] : answer?.[name]
    if (own === undefined) t.fail(`${where}.${name} is missing in ${JSON.stringify(answer)}`)
    else resembles(t, value, own, `${where}.${name}`)
  }
}

t.test('the file is OpenAPI 3.1', async t => {
  const { valid, errors } = await new Validator().validate(structuredClone(document))
  t.ok(valid, JSON.stringify(errors))
})

t.test('a gateway accepts the examples and returns the errors', async t => {
  const gateway = await startGateway(t, { ...config, workers: 1 })
  const ask = async (method, body, headers = {}) => {
    const answer = await fetch(`${gateway.url}/api/${method}`, {
      method: 'POST',
      headers: { 'X-API-Key': key, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: answer.status, text: await answer.text() }
  }
  const { hmac_secret_key: secret } = config.client.token
  const client = await RawClient.connected(gateway.ws, {
    name: 'js',
    token: makeToken(
      { sub: '42', info: { name: 'Ann' }, jti: 'a81bc81b', iat: 1767225600, labels: { tier: 'pro' } },
      secret,
    ),
  })
  t.teardown(() => client.socket.terminate())
  await client.subscribe('chat:lobby')
  client.socket.on('message', message => {
    for (const line of message.toString().split('\n')) {
      const { id } = JSON.parse(line).push?.message?.data.$req ?? {}
      const data = { id, data: { page: '/cart' } }
      if (id) client.send({ id: ++client.lastId, rpc: { method: '$ack', data } })
    }
  })

  for (const { name, answer: schema, example, result } of operations(document)) {
    if (example === undefined) continue
    const { status, text } = await ask(name, example)
    t.equal(status, 200, name)
    const answer = JSON.parse(text)
    fits(t, schema, answer, name)
    resembles(t, result, answer, name)
  }

  for (const { name, answer: schema, post } of operations(document)) {
    // An unknown channel, or an empty object.
    for (const body of [{ channel: 'caht:lobby', channels: ['caht:lobby'], data: 1 }, {}]) {
      const { status, text } = await ask(name, body)
      t.equal(status, 200, name)
      fits(t, schema, JSON.parse(text), name)
      if (post.deprecated) t.type(JSON.parse(text).error, 'object', `${name} only refuses`)
    }
    const { status, text } = await ask(name, '[]')
    t.equal(status, 400, name)
    t.match(text, /^Bad Request: /, name)
  }

  t.match((await ask('subscribe', {})).text, 'bad request: channel is missing"')
  const refused = await ask('presence', { channel: 'news' }, { 'X-Centrifugo-Error-Mode': 'transport' })
  t.equal(refused.status, 400)
  fits(t, { $ref: '#/components/schemas/Error' }, JSON.parse(refused.text), 'transport error mode')
  t.equal((await ask('info', {}, { 'X-API-Key': 'no' })).status, 401)
})
