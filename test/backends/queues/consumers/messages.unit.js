import t from 'tap'
import { Publisher } from '../../../../src/backends/api/publish.js'
import { MessageRunner } from '../../../../src/backends/queues/messages.js'
import { backoffDelay } from '../../../../src/backends/queues/timing.js'
import { errors } from '../../../../src/base/errors.js'
import { consumerTypes } from '../../../../src/config/options/consumers.js'
import { flatten } from '../../../../src/config/options/make.js'
import { put } from '../../../../src/config/values.js'
import { Traffic } from '../../../../src/metrics/traffic.js'
import { pluck } from '../../lists.js'

/** Channels: `bin:` binary, `obj:` objects, `unknown:` none; `down` has a broker that fails. */
function rig() {
  const published = []
  const traffic = new Traffic([])
  const rules = {
    resolve: channel =>
      channel.startsWith('unknown:')
        ? undefined
        : {
            kind: 'stream',
            options: { history_size: 1, history_ttl: 1000, delta_publish: false },
            historyOn: true,
            metaTtl: 1000,
            dataFormat: channel.startsWith('bin:')
              ? 'binary'
              : channel.startsWith('obj:')
                ? 'json_object'
                : '',
          },
  }
  const pubsub = /** @type {any} */ ({
    publish(channel, data, options, done) {
      if (channel === 'down') return queueMicrotask(() => done(errors.internal, 0, ''))
      published.push({ channel, data: String(data), options })
      queueMicrotask(() => done(null, 1, 'e'))
    },
    removeHistory: async channel => {
      published.push({ removed: channel })
    },
  })
  /** @type {any} */
  const context = {
    rules,
    traffic,
    publisher: new Publisher(/** @type {any} */ (rules), pubsub, traffic),
    broker: { pubsub, ready: () => true },
    logger: { error() {} },
  }
  return { context, published, traffic }
}

/** @param {string} type @returns {any} defaults of its publication data mode, enabled */
function dataModeOf(type) {
  /** @type {Record<string, any>} */
  const block = {}
  for (const { path, default: value } of flatten(consumerTypes[type])) put(block, path, value)
  return { ...block.publication_data_mode, enabled: true }
}

const message = (payload, { method = '', headers = {} } = {}) => ({
  payload: typeof payload === 'string' || payload === null ? payload : Buffer.from(payload),
  method,
  headers: Object.assign(Object.create(null), headers),
})

t.test('valid commands run', async t => {
  const { context, published, traffic } = rig()
  const runner = new MessageRunner(context, undefined)
  const good = [
    ['envelope', '{"method":"publish","payload":{"channel":"a","data":{"x": 1.0}}}', ''],
    [
      'envelope with text',
      JSON.stringify({ method: 'publish', payload: '{"channel":"a","data":{"x": 1.0}}' }),
      '',
    ],
    ['method beside', '{"channel":"a","data":{"x": 1.0}}', 'publish'],
    ['a method beside wins', '{"method":"nothing","channel":"a","data":{"x": 1.0},"payload":{}}', 'publish'],
    ['unknown fields', '{"channel":"a","data":{"x": 1.0},"foo":1}', 'publish'],
  ]
  for (const [name, payload, method] of good) {
    t.same(await runner.run(message(Buffer.from(payload), { method })), { outcome: 'done' }, name)
    t.equal(published.pop()?.data, '{"x": 1.0}', `${name}: bytes stay`)
  }
  t.equal(traffic.drain().api.publish, good.length)
  t.same(await runner.run(message('{"channels":["a","b"],"data":1}', { method: 'broadcast' })), {
    outcome: 'done',
  })
  t.same(
    published.splice(0).map(({ channel }) => channel),
    ['a', 'b'],
  )
  t.same(await runner.run(message('{"channel":"a"}', { method: 'history_remove' })), { outcome: 'done' })
  t.same(published.splice(0), [{ removed: 'a' }])
})

t.test('invalid commands are skipped with a reason', async t => {
  const { context, published } = rig()
  const runner = new MessageRunner(context, undefined)
  /** @type {[method: string, reason: string, ...payloads: any[]][]} */
  const bad = [
    ['', 'malformed', null, '', 'not JSON', 'null', '[]', '{}', '{"method":1,"payload":{}}'],
    ['', 'malformed', ...['', ',"payload":[]', ',"payload":"x"'].map(rest => `{"method":"publish"${rest}}`)],
    ['publish', 'malformed', '"{}"'],
    ['', 'unknown_method', '{"method":"PUBLISH","payload":{}}'],
    ...['batch', 'info', 'rpc', 'map_stats'].map(
      method => /** @type {[string, string, string]} */ ([method, 'unknown_method', '{}']),
    ),
    ['publish', 'invalid_request', '{"channel":1,"data":1}', '{"channel":"a","data":1,"version":-1}'],
    ['publish', 'bad_request', '{"data":1}', '{"channel":"a"}', '{"channel":"obj:a","data":1}'],
    ['disconnect', 'bad_request', '{"user":"1","label_filter":{"key":"a","cmp":"like"}}'],
    ['subscribe', 'bad_request', '{"channel":"a","user":"1","server_tags_filter":{}}'],
    ['publish', 'not_available', '{"channel":"a","data":1,"users":["1"]}'],
    ['publish', 'unknown_channel', '{"channel":"unknown:a","data":1}'],
    ['broadcast', 'unknown_channel', '{"channels":["a","unknown:a"],"data":1}'],
    ['', 'too_large', Buffer.alloc(16 * 1024 * 1024 + 1)],
  ]
  for (const [method, reason, ...payloads] of bad)
    for (const payload of payloads) {
      const result = /** @type {any} */ (await runner.run(message(payload, { method })))
      const what = `${method} ${String(payload).slice(0, 40)}: ${result.what}`
      t.match(result, { outcome: 'skipped', reason }, what)
    }
  t.same(pluck(published, 'channel'), ['a'], 'only the good item of the broadcast')
})

t.test('an internal error is retried, also in a broadcast', async t => {
  const runner = new MessageRunner(rig().context, undefined)
  const run = (method, request) => runner.run(message(JSON.stringify(request), { method }))
  t.same(await run('publish', { channel: 'down', data: 1 }), { outcome: 'retry' })
  t.same(await run('broadcast', { channels: ['a', 'down', 'unknown:a'], data: 1 }), { outcome: 'retry' })
  const noBroker = rig().context
  noBroker.publisher.publish = () => {
    throw new Error('a programming error')
  }
  const failing = new MessageRunner(noBroker, undefined)
  const publish = message('{"channel":"a","data":1}', { method: 'publish' })
  t.same(await failing.run(publish), { outcome: 'retry' })
})

t.test('publication data mode reads the channel and options from headers', async t => {
  for (const [type, block] of Object.entries(consumerTypes)) {
    if (!('publication_data_mode' in block)) continue
    const { context, published } = rig()
    const runner = new MessageRunner(context, dataModeOf(type))
    const headers = {
      'centrifugo-channels': 'a, b',
      'centrifugo-idempotency-key': 'k',
      'centrifugo-delta': 'True',
      'centrifugo-version': '18446744073709551615',
      'centrifugo-version-epoch': 'v',
      'centrifugo-tag-color': 'red',
      other: 'x',
    }
    t.same(await runner.run(message(Buffer.from('{"x": 1}'), { headers })), { outcome: 'done' }, type)
    t.same(pluck(published, 'channel'), ['a', ' b'], 'names of channels are not trimmed')
    t.match(published[0].options, {
      idempotencyKey: 'k',
      delta: true,
      version: 2n ** 64n - 1n,
      versionEpoch: 'v',
      tags: { color: 'red' },
    })
  }
})

t.test('publication data mode skips invalid messages', async t => {
  const { context, published } = rig()
  const runner = new MessageRunner(context, dataModeOf('redis_stream'))
  const channels = 'centrifugo-channels'
  const bad = [
    ['1', {}, 'missing_channels'],
    ['1', { [channels]: '' }, 'missing_channels'],
    ['1', { 'Centrifugo-Channels': 'a' }, 'missing_channels'],
    ['1', { [channels]: 'a', 'centrifugo-delta': 'yes' }, 'invalid_header'],
    ['1', { [channels]: 'a', 'centrifugo-version': '-1' }, 'invalid_header'],
    ['1', { [channels]: 'a', 'centrifugo-version': '18446744073709551616' }, 'invalid_header'],
    ['', { [channels]: 'a' }, 'invalid_data'],
    [null, { [channels]: 'a' }, 'invalid_data'],
    ['hello', { [channels]: 'a' }, 'invalid_data'],
    ['1', { [channels]: 'obj:a' }, 'bad_request'],
    ['1', { [channels]: 'unknown:a' }, 'unknown_channel'],
  ]
  for (const [payload, headers, reason] of /** @type {any[]} */ (bad)) {
    const result = /** @type {any} */ (await runner.run(message(payload, { headers })))
    t.equal(result.reason, reason, `${payload} ${JSON.stringify(headers)}: ${result.what}`)
  }
  t.same(published, [])
  t.same(await runner.run(message('hello', { headers: { [channels]: 'bin:a' } })), { outcome: 'done' })
  t.same(await runner.run(message('1', { headers: { [channels]: 'a,down' } })), { outcome: 'retry' })
  const off = new MessageRunner(context, {
    ...dataModeOf('redis_stream'),
    delta_value: '',
    tags_value_prefix: '',
  })
  const headers = { [channels]: 'a', 'centrifugo-delta': 'yes', 'centrifugo-tag-x': '1' }
  t.same(await off.run(message('1', { headers })), { outcome: 'done' }, 'an empty name switches off')
  t.equal(published.pop()?.options.tags ?? null, null)
})

t.test('delays double up to 5 s, with jitter', async t => {
  t.same(
    [1, 2, 3, 4, 8, 9, 10, 1e6].map(tries => backoffDelay(tries, () => 0)),
    [20, 40, 80, 160, 2560, 5000, 5000, 5000],
  )
  t.same(
    [1, 2, 3].map(tries => backoffDelay(tries, () => 0.999)),
    [38, 76, 152],
  )
})
