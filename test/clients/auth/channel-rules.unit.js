import t from 'tap'
import { ChannelRules } from '../../../src/clients/auth/channel-rules.js'

const options = {
  presence: false,
  history_size: 0,
  history_ttl: 0,
  history_meta_ttl: 0,
  publication_data_format: '',
  channel_regex: '',
  allow_user_limited_channels: false,
  allow_subscribe_for_client: false,
  allow_subscribe_for_anonymous: false,
  allow_publish_for_client: false,
  allow_publish_for_subscriber: false,
  allow_publish_for_anonymous: false,
  allow_presence_for_client: false,
  allow_presence_for_subscriber: false,
  allow_presence_for_anonymous: false,
  allow_history_for_client: false,
  allow_history_for_subscriber: false,
  allow_history_for_anonymous: false,
}

/**
 * @param {object} [without] options of channels without namespace
 * @param {object[]} [namespaces]
 * @param {object} [channel]
 * @param {object} [client]
 */
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
      client: {
        insecure: false,
        subscribe_to_user_personal_channel: { enabled: false, personal_channel_namespace: '' },
        ...client,
      },
      republish: [],
    }),
  )

/** @typedef {ReturnType<typeof rules>} Rules */

/**
 * @param {Rules} it
 * @param {string} channel
 */
const must = (it, channel) => {
  const ns = it.resolve(channel)
  if (ns === undefined) throw new Error(`no namespace for ${channel}`)
  return ns
}

t.test('the namespace is what stands before the first boundary', async t => {
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
  for (const channel of [
    'Chat:x',
    'none:x',
    '$none:x',
    'x$chat:x',
    '$$chat:x',
    'constructor:x',
    '__proto__:x',
  ]) {
    t.equal(it.resolve(channel), undefined, channel)
  }
  t.equal(it.resolve('chat:1'), it.resolve('$chat:2'), 'the same object each time')
})

t.test('own separators, and none', async t => {
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

  const none = rules(
    { allow_user_limited_channels: true, allow_subscribe_for_client: true },
    [{ name: 'chat' }],
    {
      private_prefix: '',
      namespace_boundary: '',
      user_boundary: '',
      user_separator: '',
    },
  )
  const ns = must(none, 'chat:x')
  t.equal(ns.name, '')
  t.notOk(none.isPrivate('$x'))
  t.equal(none.userLimited('x#1', ns), undefined)
  t.ok(none.maySubscribe('$x#1', ns, '2'))

  const single = rules({ allow_user_limited_channels: true }, [], { user_separator: '' })
  t.same(single.userLimited('x#1,2', must(single, 'x')), ['1,2'], 'one user only')
})

t.test('what a namespace adds up to', async t => {
  const it = rules(
    {
      history_size: 10,
      history_ttl: 60_000,
      history_meta_ttl: 90_000,
      publication_data_format: 'json_object',
    },
    [{ name: 'plain' }, { name: 'half', history_size: 10 }],
    { publication_data_format: 'binary' },
  )
  t.match(it.resolve('x'), { historyOn: true, metaTtl: 90_000, dataFormat: 'json_object', regex: null })
  t.match(it.resolve('plain:x'), {
    historyOn: false,
    metaTtl: 2_592_000_000,
    dataFormat: 'binary',
    regex: null,
  })
  t.equal(it.resolve('half:x')?.historyOn, false)
  t.equal(it.resolve('half:x')?.options.history_size, 10)
})

t.test('names are ASCII, or what channel_regex says of the part after the namespace', async t => {
  const it = rules({ channel_regex: '^\\$?[a-z]+$' }, [
    { name: 'free' },
    { name: 'num', channel_regex: '^\\d+$' },
    { name: 'loose', channel_regex: 'é' },
  ])
  const table = /** @type {[string, boolean][]} */ ([
    ['free:anything/*&<>', true],
    ['free:\x7f', true],
    ['free:é', false],
    ['free:\u0080', false],
    ['num:42', true],
    ['$num:42', true],
    ['num:4:2', false],
    ['num:x', false],
    ['num:', false],
    ['loose:xéx', true],
    ['loose:x', false],
    ['abc', true],
    ['$abc', true],
    ['abc1', false],
    [':abc', true],
    [':abc1', false],
  ])
  for (const [channel, good] of table) t.equal(it.checkName(channel, must(it, channel)), good, channel)
})

t.test('a channel_regex that cannot be used is named', async t => {
  t.throws(() => rules({ channel_regex: '(' }), { message: /^channel\.without_namespace\.channel_regex: / })
  t.throws(() => rules({}, [{ name: 'a1', channel_regex: '(?=x)' }]), {
    message: /^channel\.namespaces\[a1\]\.channel_regex: invalid pattern "\(\?=x\)"/,
  })
})

t.test('user-limited channels', async t => {
  const it = rules({ allow_subscribe_for_client: true }, [
    {
      name: 'dm',
      allow_user_limited_channels: true,
      allow_subscribe_for_client: true,
      allow_subscribe_for_anonymous: true,
    },
  ])
  const dm = must(it, 'dm:x')
  t.same(it.userLimited('dm:x#42,43', dm), ['42', '43'])
  t.same(it.userLimited('dm:a#b#42', dm), ['42'], 'after the last boundary')
  t.equal(it.userLimited('dm:x', dm), undefined)
  t.equal(it.userLimited('x#42', must(it, 'x')), undefined, 'no meaning without the option')

  t.equal(it.maySubscribe('dm:x#42,43', dm, '43'), true)
  t.equal(it.maySubscribe('dm:x#42,43', dm, '4'), false, 'allow_subscribe_for_client does not apply')
  t.equal(it.maySubscribe('dm:x#42,43', dm, ''), false)
  t.equal(it.maySubscribe('dm:x#', dm, ''), false, 'an empty list holds nobody')
  t.equal(it.maySubscribe('dm:x', dm, '4'), true)
  t.equal(it.maySubscribe('x#42', must(it, 'x'), '4'), true)
})

t.test('who may subscribe', async t => {
  const table = /** @type {[object, string, boolean][]} */ ([
    [{}, 'u', false],
    [{}, '', false],
    [{ allow_subscribe_for_client: true }, 'u', true],
    [{ allow_subscribe_for_client: true }, '', false],
    [{ allow_subscribe_for_anonymous: true }, '', false],
    [{ allow_subscribe_for_anonymous: true }, 'u', false],
    [{ allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }, '', true],
  ])
  for (const [without, user, may] of table) {
    const it = rules(without)
    const label = `${JSON.stringify(without)} user "${user}"`
    t.equal(it.maySubscribe('x', must(it, 'x'), user), may, label)
    t.equal(it.maySubscribe('$x', must(it, '$x'), user), false, `${label}, private`)
  }
})

t.test('who may publish, read presence and read history', async t => {
  const calls = /** @type {const} */ ({
    publish: 'mayPublish',
    presence: 'mayReadPresence',
    history: 'mayReadHistory',
  })
  // [for_client, for_subscriber, for_anonymous], user, subscribed -> allowed
  const table = /** @type {[number[], string, boolean, boolean][]} */ ([
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
  for (const [name, call] of Object.entries(calls)) {
    for (const [[client, subscriber, anonymous], user, subscribed, may] of table) {
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

t.test('client.insecure: everything everywhere, but private channels stay', async t => {
  const it = rules({ allow_user_limited_channels: true }, [], {}, { insecure: true })
  const ns = must(it, 'x')
  t.equal(it.maySubscribe('x', ns, ''), true)
  t.equal(it.maySubscribe('x#42', ns, '1'), true)
  t.equal(it.maySubscribe('$x', ns, '1'), false)
  t.equal(it.mayPublish(ns, '', false), true)
  t.equal(it.mayReadPresence(ns, '', false), true)
  t.equal(it.mayReadHistory(ns, '', false), true)
})

t.test('personal channels', async t => {
  t.equal(rules().personalChannel('42'), '#42')
  const personal = { subscribe_to_user_personal_channel: { personal_channel_namespace: 'me' } }
  t.equal(rules({}, [{ name: 'me' }], {}, personal).personalChannel('42'), 'me:#42')
  const own = rules({}, [{ name: 'me' }], { namespace_boundary: '/', user_boundary: '@' }, personal)
  t.equal(own.personalChannel('42'), 'me/@42')
})
