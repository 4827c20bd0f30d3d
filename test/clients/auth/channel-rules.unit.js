import t from 'tap'
import { ChannelRules } from '../../../src/clients/auth/channel-rules.js'

/** Permissions are absent, which is the same as false. */
const options = {
  history_size: 0,
  history_ttl: 0,
  history_meta_ttl: 0,
  publication_data_format: '',
  channel_regex: '',
}

/** @param {object} [without] options of channels without namespace @param {object[]} [namespaces] */
const rules = (without = {}, namespaces = [], channel = {}, client = {}) =>
  new ChannelRules(
    /** @type {any} */ ({
      channel: {
        without_namespace: { ...options, ...without },
        namespaces: namespaces.map(namespace => ({ ...options, ...namespace })),
        private_prefix: '$',
        namespace_boundary: ':',
        user_boundary: '#',
        user_separator: ',',
        history_meta_ttl: 2_592_000_000,
        publication_data_format: '',
        max_length: 255,
        ...channel,
      },
      client: { insecure: false, ...client },
      republish: [],
    }),
  )

/** @param {ReturnType<typeof rules>} it @param {string} channel */
const must = (it, channel) => {
  const ns = it.resolve(channel)
  if (ns === undefined) throw new Error(`no namespace for ${channel}`)
  return ns
}

t.test('the namespace is the part before the first boundary', async t => {
  const it = rules({}, [{ name: 'chat' }, { name: 'a' }])
  const table = {
    news: '',
    'chat:x': 'chat',
    'a:b:c': 'a',
    $chat: '',
    '$chat:x': 'chat',
    ':x': '',
    '$:x': '',
    'chat:': 'chat',
    'chat:#42': 'chat',
    $: '',
    '': '',
  }
  for (const [channel, name] of Object.entries(table)) t.equal(it.resolve(channel)?.name, name, channel)
  for (const name of ['Chat', 'none', '$none', 'x$chat', '$$chat', 'constructor', '__proto__'])
    t.equal(it.resolve(`${name}:x`), undefined, name)
  t.equal(it.resolve('chat:1'), it.resolve('$chat:2'), 'the same object each time')
})

t.test('separators are configurable, or absent', async t => {
  const own = rules({}, [{ name: 'chat', allow_user_limited_channels: true }], {
    private_prefix: '!!',
    namespace_boundary: '::',
    user_boundary: '@@',
    user_separator: ';;',
  })
  t.equal(own.resolve('!!chat::x')?.name, 'chat')
  t.equal(own.resolve('chat:x')?.name, '')
  t.ok(own.isPrivate('!!x'))
  t.notOk(own.isPrivate('$x'))
  t.same(own.userLimited('chat::x@@1;;2', must(own, 'chat::x')), ['1', '2'])

  const limited = { allow_user_limited_channels: true, allow_subscribe_for_client: true }
  const empty = { private_prefix: '', namespace_boundary: '', user_boundary: '', user_separator: '' }
  const none = rules(limited, [{ name: 'chat' }], empty)
  const ns = must(none, 'chat:x')
  t.equal(ns.name, '')
  t.notOk(none.isPrivate('$x'))
  t.equal(none.userLimited('x#1', ns), undefined)
  t.ok(none.maySubscribe('$x#1', ns, '2'))

  const single = rules({ allow_user_limited_channels: true }, [], { user_separator: '' })
  t.same(single.userLimited('x#1,2', must(single, 'x')), ['1,2'], 'one user only')
})

t.test('a namespace has its own options, else global ones', async t => {
  const history = { history_size: 10, history_ttl: 60_000, history_meta_ttl: 90_000 }
  const it = rules(
    { ...history, publication_data_format: 'json_object' },
    [{ name: 'plain' }, { name: 'half', history_size: 10 }],
    { publication_data_format: 'binary' },
  )
  t.match(it.resolve('x'), { historyOn: true, metaTtl: 90_000, dataFormat: 'json_object', regex: null })
  const plain = { historyOn: false, metaTtl: 2_592_000_000, dataFormat: 'binary', regex: null }
  t.match(it.resolve('plain:x'), plain)
  t.match(it.resolve('half:x'), { historyOn: false, options: { history_size: 10 } })
})

t.test('names are ASCII, or match channel_regex after the namespace', async t => {
  const it = rules({ channel_regex: '^\\$?[a-z]+$' }, [
    { name: 'free' },
    { name: 'num', channel_regex: '^\\d+$' },
    { name: 'loose', channel_regex: 'é' },
  ])
  const good = ['free:anything/*&<>', 'free:\x7f', 'num:42', '$num:42', 'loose:xéx', 'abc', '$abc', ':abc']
  const bad = ['free:é', 'free:\u0080', 'num:4:2', 'num:x', 'num:', 'loose:x', 'abc1', ':abc1']
  for (const channel of good) t.equal(it.checkName(channel, must(it, channel)), true, channel)
  for (const channel of bad) t.equal(it.checkName(channel, must(it, channel)), false, channel)
})

t.test('an error names an invalid channel_regex', async t => {
  t.throws(() => rules({ channel_regex: '(' }), { message: /^channel\.without_namespace\.channel_regex: / })
  t.throws(() => rules({}, [{ name: 'a1', channel_regex: '(?=x)' }]), {
    message: /^channel\.namespaces\[a1\]\.channel_regex: invalid pattern "\(\?=x\)"/,
  })
})

t.test('a user-limited channel admits only the users in its name', async t => {
  const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
  const it = rules({ allow_subscribe_for_client: true }, [
    { name: 'dm', allow_user_limited_channels: true, ...open },
  ])
  const dm = must(it, 'dm:x')
  t.same(it.userLimited('dm:x#42,43', dm), ['42', '43'])
  t.same(it.userLimited('dm:a#b#42', dm), ['42'], 'after the last boundary')
  t.equal(it.userLimited('dm:x', dm), undefined)
  t.equal(it.userLimited('x#42', must(it, 'x')), undefined, 'not without the option')
  for (const [channel, user, may] of /** @type {[string, string, boolean][]} */ ([
    ['dm:x#42,43', '43', true],
    ['dm:x#42,43', '4', false],
    ['dm:x#42,43', '', false],
    ['dm:x#', '', false],
    ['dm:x', '4', true],
    ['x#42', '4', true],
  ]))
    t.equal(it.maySubscribe(channel, must(it, channel), user), may, `${channel} by "${user}"`)
})

t.test('subscribing needs the permission for the kind of user', async t => {
  for (const [client, anonymous, user, may] of /** @type {[number, number, string, boolean][]} */ ([
    [0, 0, 'u', false],
    [0, 0, '', false],
    [1, 0, 'u', true],
    [1, 0, '', false],
    [0, 1, '', false],
    [0, 1, 'u', false],
    [1, 1, '', true],
  ])) {
    const it = rules({
      allow_subscribe_for_client: client === 1,
      allow_subscribe_for_anonymous: anonymous === 1,
    })
    const label = `${client}${anonymous} user "${user}"`
    t.equal(it.maySubscribe('x', must(it, 'x'), user), may, label)
    t.equal(it.maySubscribe('$x', must(it, '$x'), user), false, `${label}, private`)
  }
})

/** [for_client, for_subscriber, for_anonymous], user, subscribed -> allowed */
const PERMISSIONS = /** @type {[number[], string, boolean, boolean][]} */ ([
  [[0, 0, 0], 'u', true, false],
  [[1, 0, 0], 'u', false, true],
  [[1, 0, 0], 'u', true, true],
  [[0, 1, 0], 'u', false, false],
  [[0, 1, 0], 'u', true, true],
  [[0, 0, 1], 'u', true, false],
  [[0, 0, 1], '', true, false],
  [[1, 0, 0], '', true, false],
  [[1, 0, 1], '', false, true],
  [[0, 1, 0], '', true, false],
  [[0, 1, 1], '', false, false],
  [[0, 1, 1], '', true, true],
])

t.test('publishing and reading presence and history need a permission', async t => {
  for (const [name, call] of /** @type {const} */ ([
    ['publish', 'mayPublish'],
    ['presence', 'mayReadPresence'],
    ['history', 'mayReadHistory'],
  ])) {
    for (const [[client, subscriber, anonymous], user, subscribed, may] of PERMISSIONS) {
      const it = rules({
        [`allow_${name}_for_client`]: client === 1,
        [`allow_${name}_for_subscriber`]: subscriber === 1,
        [`allow_${name}_for_anonymous`]: anonymous === 1,
      })
      const label = `${name} ${client}${subscriber}${anonymous} user "${user}" ${subscribed}`
      t.equal(it[call](must(it, 'x'), user, subscribed), may, label)
    }
  }
})

t.test('publishing to a map and removing its keys need a permission', async t => {
  for (const [name, call] of /** @type {const} */ ([
    ['publish', 'mayPublishMap'],
    ['remove', 'mayRemoveFromMap'],
  ])) {
    for (const [[client, subscriber, anonymous], user, subscribed, may] of PERMISSIONS) {
      const map = {
        mode: 'persistent',
        [`allow_${name}_for_client`]: client === 1,
        [`allow_${name}_for_subscriber`]: subscriber === 1,
        [`allow_${name}_for_anonymous`]: anonymous === 1,
      }
      const it = rules({ subscription_type: 'map', map })
      const label = `${name} ${client}${subscriber}${anonymous} user "${user}" ${subscribed}`
      t.equal(it[call](must(it, 'x'), user, subscribed), may, label)
      t.notOk(it.mayPublish(must(it, 'x'), user, subscribed), 'not as to a stream')
    }
    t.equal(rules({ map: {} }, [], {}, { insecure: true })[call](must(rules(), 'x'), '', false), true)
  }
})

t.test('a namespace has a kind, a map has its retention', async t => {
  const history = { history_size: 10, history_ttl: 1000, batch_max_delay: 100 }
  const kindOf = (/** @type {object} */ options) => must(rules({ ...history, ...options }), 'x')
  for (const subscription_type of ['', 'stream', undefined])
    t.match(kindOf({ subscription_type }), { kind: 'stream', mapRules: null, historyOn: true, batch: {} })
  t.match(kindOf({ subscription_type: 'shared_poll' }), { kind: 'shared_poll', mapRules: null, batch: null })
  const unset = { key_ttl: 0, stream_size: 0, stream_ttl: 0, meta_ttl: 0 }
  const years = 100 * 365 * 86400 * 1000
  /** @type {[object, object][]} */
  const cases = [
    [
      { mode: 'ephemeral', key_ttl: 5000 },
      { keyTtl: 5000, streamSize: 0, streamTtl: 60_000, metaTtl: 600_000 },
    ],
    [
      { mode: 'recoverable', key_ttl: 5000 },
      { keyTtl: 5000, streamSize: 100, streamTtl: 60_000, metaTtl: 600_000 },
    ],
    [
      { mode: 'recoverable', key_ttl: 900_000, stream_size: 5, stream_ttl: 1000 },
      { keyTtl: 900_000, streamSize: 5, streamTtl: 1000, metaTtl: 900_000 },
    ],
    [{ mode: 'persistent' }, { keyTtl: 0, streamSize: 100, streamTtl: 60_000, metaTtl: years }],
    [
      { mode: 'persistent', meta_ttl: 70_000 },
      { keyTtl: 0, streamSize: 100, streamTtl: 60_000, metaTtl: 70_000 },
    ],
  ]
  for (const [map, mapRules] of cases) {
    const ns = kindOf({ subscription_type: 'map', map: { ...unset, ...map } })
    t.same([ns.mapRules, ns.metaTtl], [mapRules, /** @type {any} */ (mapRules).metaTtl])
    t.same([ns.kind, ns.historyOn, ns.batch], ['map', false, null])
  }
})

t.test('client.insecure allows everything except private channels', async t => {
  const it = rules({ allow_user_limited_channels: true }, [], {}, { insecure: true })
  const ns = must(it, 'x')
  t.equal(it.maySubscribe('x', ns, ''), true)
  t.equal(it.maySubscribe('x#42', ns, '1'), true)
  t.equal(it.maySubscribe('$x', ns, '1'), false)
  for (const call of /** @type {const} */ (['mayPublish', 'mayReadPresence', 'mayReadHistory']))
    t.equal(it[call](ns, '', false), true, call)
})

t.test('the personal channel is named after the user', async t => {
  t.equal(rules().personalChannel('42'), '#42')
  const personal = { subscribe_to_user_personal_channel: { personal_channel_namespace: 'me' } }
  t.equal(rules({}, [{ name: 'me' }], {}, personal).personalChannel('42'), 'me:#42')
  const own = rules({}, [{ name: 'me' }], { namespace_boundary: '/', user_boundary: '@' }, personal)
  t.equal(own.personalChannel('42'), 'me/@42')
})
