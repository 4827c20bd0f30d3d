import t from 'tap'
import { disconnects, errors } from '../../../src/base/errors.js'
import { Tokens } from '../../../src/clients/auth/tokens.js'
import { makeConfig, makeToken, NOW, thrown } from './jwt.js'

const clock = () => NOW * 1000
const SECRET = 'secret'
const PAST = NOW - 10
const FUTURE = NOW + 10

/** @param {Parameters<typeof makeConfig>} settings */
const tokens = (.../** @type {any[]} */ settings) =>
  new Tokens(
    /** @type {any} */ (makeConfig({ hmac_secret_key: SECRET, ...settings[0] }, settings[1], settings[2])),
    { clock },
  )
const plain = tokens({})

/** @param {unknown} payload @param {any} [it] @returns {any} */
const connect = (payload, it = plain) => it.connect(makeToken(payload, SECRET))
/** @param {unknown} payload @param {any} [it] @returns {any} */
const subscribe = (payload, it = plain) => it.subscribe(makeToken(payload, SECRET))

t.test('a connection token without anything is an anonymous user that never expires', async t => {
  t.same(connect({}), { user: '', expireAt: 0, info: undefined, meta: undefined, subs: new Map() })
  t.same(
    connect({
      sub: null,
      exp: null,
      info: null,
      meta: null,
      channels: null,
      subs: null,
      channel: null,
      aud: null,
    }),
    {
      user: '',
      expireAt: 0,
      info: undefined,
      meta: undefined,
      subs: new Map(),
    },
  )
})

t.test('user and expiry', async t => {
  t.match(connect({ sub: '42', exp: FUTURE }), { user: '42', expireAt: FUTURE })
  t.match(connect({ exp: FUTURE, expire_at: FUTURE + 5 }), { expireAt: FUTURE + 5 }, 'expire_at overrides')
  t.match(connect({ expire_at: FUTURE }), { expireAt: FUTURE })
  t.match(connect({ exp: FUTURE, expire_at: 0 }), { expireAt: 0 }, '0 = never')
  t.match(connect({ exp: FUTURE, expire_at: -1 }), { expireAt: 0 }, 'negative = never')
  t.match(connect({ exp: NOW + 0.5 }), { expireAt: NOW + 1 }, 'fractions are allowed')
  t.match(
    connect({ exp: FUTURE, nbf: NOW, iat: FUTURE, jti: 'x' }),
    { expireAt: FUTURE },
    'iat and jti say nothing',
  )
})

t.test('expired, not yet valid, expire_at passed', async t => {
  for (const [call, name] of [
    [connect, 'connect'],
    [subscribe, 'subscribe'],
  ]) {
    const table = /** @type {[object, Error][]} */ ([
      [{ exp: PAST }, errors.tokenExpired],
      [{ exp: NOW }, errors.tokenExpired],
      [{ exp: 0 }, errors.tokenExpired],
      [{ exp: FUTURE, nbf: FUTURE }, errors.tokenExpired],
      [{ exp: PAST, expire_at: 0 }, errors.tokenExpired],
      [{ exp: PAST, expire_at: FUTURE }, errors.tokenExpired],
      [{ exp: FUTURE, expire_at: PAST }, errors.expired],
      [{ expire_at: NOW }, errors.expired],
    ])
    for (const [claims, error] of table) {
      const all = name === 'subscribe' ? { channel: 'x', ...claims } : claims
      t.equal(
        thrown(() => /** @type {any} */ (call)(all)),
        error,
        `${name} ${JSON.stringify(claims)}`,
      )
    }
  }
})

t.test('info, meta and data keep their original text, in one line', async t => {
  const claims = connect(`{
    "info": {"n": 12345678901234567890,\r\n "f":1.0}, "meta": ["\\u0041", 1e2], "sub":"1",
    "subs": {"n\\u0065ws": {"data" : {"w":1.50} , "info":"x"}}}`)
  t.equal(claims.info, '{"n": 12345678901234567890, "f":1.0}')
  t.equal(claims.meta, '["\\u0041", 1e2]')
  t.same(claims.subs, new Map([['news', { info: '"x"', data: '{"w":1.50}' }]]))
  t.match(subscribe('{"channel":"x","info":1.0,"data":[2.0]}'), { info: '1.0', data: '[2.0]' })
})

t.test('b64info and b64data win when they are not empty', async t => {
  const base64 = (/** @type {string} */ text) => Buffer.from(text).toString('base64')
  t.equal(connect({ info: { a: 1 }, b64info: base64('{"b":1}') }).info, '{"b":1}')
  t.equal(connect({ info: { a: 1 }, b64info: '' }).info, '{"a":1}')
  t.equal(
    connect({ b64info: base64('no json\n{') }).info,
    '"no json\\n{"',
    'what is no JSON becomes a string of it',
  )
  t.equal(connect({ b64info: base64('{\n"b":1\n}') }).info, '{"b":1}', 'JSON in one line')
  t.match(subscribe({ channel: 'x', info: 1, b64info: base64('2'), data: 3, b64data: base64('4') }), {
    info: '2',
    data: '4',
  })
  const { subs } = connect({ subs: { x: { info: 1, b64info: base64('2'), data: 3, b64data: base64('4') } } })
  t.same(subs.get('x'), { info: '2', data: '4' })
  for (const bad of ['a', 'YQ', 'YQ=', 'Y_Q=', '!!!!', 'YQ==YQ==']) {
    t.equal(
      thrown(() => connect({ b64info: bad })),
      disconnects.invalidToken,
      bad,
    )
    t.equal(
      thrown(() => connect({ subs: { x: { b64data: bad } } })),
      disconnects.invalidToken,
      bad,
    )
    t.equal(
      thrown(() => subscribe({ channel: 'x', b64data: bad })),
      errors.permissionDenied,
      bad,
    )
  }
})

t.test('channels and subs', async t => {
  t.same(
    connect({ channels: ['a', 'b', 'a'] }).subs,
    new Map([
      ['a', {}],
      ['b', {}],
    ]),
  )
  t.same([...connect({ channels: ['a'], subs: { b: {}, c: null } }).subs.keys()], ['b', 'c'], 'subs win')
  t.same([...connect({ channels: ['a'], subs: {} }).subs.keys()], ['a'], 'empty subs do not')
  const override = {
    presence: { value: true },
    join_leave: { value: false },
    force_push_join_leave: { value: true },
    force_positioning: {},
    force_recovery: { value: true },
    unknown: 7,
  }
  const expected = {
    presence: true,
    join_leave: false,
    force_push_join_leave: true,
    force_positioning: false,
    force_recovery: true,
  }
  t.same(connect({ subs: { x: { override } } }).subs.get('x'), { override: expected })
  t.same(subscribe({ channel: 'x', override }).override, expected)
  t.equal(subscribe({ channel: 'x', override: {} }).override, undefined)
  t.equal(subscribe({ channel: 'x', override: { presence: null } }).override, undefined)
})

t.test('a subscription token', async t => {
  t.same(subscribe({ sub: '42', channel: '$x:1', exp: FUTURE, client: 'c1' }), {
    user: '42',
    channel: '$x:1',
    client: 'c1',
    expireAt: FUTURE,
    info: undefined,
    data: undefined,
    override: undefined,
  })
  t.match(subscribe({ channel: 'x', client: '' }), { user: '', client: undefined, expireAt: 0 })
})

t.test('a token of the other kind is a bad one', async t => {
  t.equal(
    thrown(() => connect({ sub: '42', channel: 'x' })),
    disconnects.invalidToken,
  )
  t.equal(
    thrown(() => subscribe({ sub: '42' })),
    errors.permissionDenied,
  )
  t.equal(
    thrown(() => subscribe({ sub: '42', channel: '' })),
    errors.permissionDenied,
  )
  t.equal(
    thrown(() => connect({ channel: 'x', exp: PAST })),
    disconnects.invalidToken,
    'whether expired or not',
  )
  t.equal(
    thrown(() => subscribe({ exp: PAST })),
    errors.permissionDenied,
    'whether expired or not',
  )
})

t.test('audience and issuer, word for word', async t => {
  const it = tokens({ audience: 'me', issuer: 'them' })
  t.match(connect({ aud: 'me', iss: 'them' }, it), { user: '' })
  t.match(connect({ aud: ['you', 'me'], iss: 'them' }, it), { user: '' })
  for (const claims of [
    {},
    { aud: 'me' },
    { iss: 'them' },
    { aud: 'you', iss: 'them' },
    { aud: [], iss: 'them' },
    { aud: 'me2', iss: 'them' },
    { aud: 'me', iss: 'Them' },
  ]) {
    t.equal(
      thrown(() => connect(claims, it)),
      disconnects.invalidToken,
      JSON.stringify(claims),
    )
    t.equal(
      thrown(() => connect({ ...claims, exp: PAST }, it)),
      disconnects.invalidToken,
      'before the expiry',
    )
    t.equal(
      thrown(() => subscribe({ channel: 'x', ...claims }, it)),
      errors.permissionDenied,
    )
  }
  t.equal(
    thrown(() => connect({ aud: 'me', iss: 'them', exp: PAST }, it)),
    errors.tokenExpired,
  )
})

t.test('audience and issuer by pattern', async t => {
  const it = tokens({ audience_regex: '^me-\\d+$', issuer_regex: 'them' })
  t.match(connect({ aud: 'me-1', iss: 'x.them.y' }, it), { user: '' }, 'unanchored unless anchored')
  t.match(connect({ aud: ['you', 'me-2'], iss: 'them' }, it), { user: '' }, 'one matching member is enough')
  for (const claims of [
    {},
    { aud: 'me-1' },
    { iss: 'them' },
    { aud: 'me-x', iss: 'them' },
    { aud: [], iss: 'them' },
  ]) {
    t.equal(
      thrown(() => connect(claims, it)),
      disconnects.invalidToken,
      JSON.stringify(claims),
    )
    t.equal(
      thrown(() => connect({ ...claims, exp: PAST }, it)),
      disconnects.invalidToken,
      'before the expiry',
    )
    t.equal(
      thrown(() => subscribe({ channel: 'x', ...claims }, it)),
      errors.permissionDenied,
    )
  }
})

t.test('another claim for the user', async t => {
  const it = tokens({ user_id_claim: 'user_id' })
  t.equal(connect({ sub: '1', user_id: '2' }, it).user, '2')
  t.equal(connect({ sub: '1' }, it).user, '', 'sub is ignored')
  t.equal(subscribe({ channel: 'x', user_id: '2' }, it).user, '2')
  t.equal(
    thrown(() => connect({ user_id: 2 }, it)),
    disconnects.invalidToken,
  )
  t.equal(connect({}, tokens({ user_id_claim: 'constructor' })).user, '', 'only a claim of its own')
})

t.test('keys of their own for subscriptions', async t => {
  const it = tokens(
    { issuer: 'a' },
    {},
    { enabled: true, hmac_secret_key: 'other', issuer: 'b', user_id_claim: 'uid' },
  )
  const own = (/** @type {object} */ claims) => makeToken(claims, 'other')
  t.match(it.connect(makeToken({ sub: '1', iss: 'a' }, SECRET)), { user: '1' })
  t.match(it.subscribe(own({ uid: '1', sub: '2', iss: 'b', channel: 'x' })), { user: '1' })
  t.equal(
    thrown(() => it.connect(own({ sub: '1', iss: 'a' }))),
    disconnects.invalidToken,
  )
  t.equal(
    thrown(() => subscribe({ iss: 'b', channel: 'x' }, it)),
    errors.permissionDenied,
  )
  t.equal(
    thrown(() => it.subscribe(own({ iss: 'a', channel: 'x' }))),
    errors.permissionDenied,
  )
  const off = tokens({}, {}, { enabled: false, hmac_secret_key: 'other' })
  t.match(subscribe({ channel: 'x' }, off), { channel: 'x' })
  t.equal(
    thrown(() => off.subscribe(own({ channel: 'x' }))),
    errors.permissionDenied,
  )
})

t.test(
  'a connection that does not end by its token: an expired one stays expired, whatever else',
  async t => {
    const it = /** @type {any} */ (tokens)()
    const endless = (/** @type {object} */ claims) =>
      /** @type {any} */ (it.connect(makeToken(claims, SECRET), false))
    t.equal(endless({ exp: FUTURE }).expireAt, 0)
    t.equal(endless({ exp: FUTURE, expire_at: PAST }).expireAt, 0)
    t.equal(
      thrown(() => endless({ exp: PAST })),
      errors.tokenExpired,
    )
    t.equal(
      thrown(() => it.connect(makeToken({}, 'wrong'), false)),
      disconnects.invalidToken,
    )
  },
)

t.test('insecure_skip_token_signature_verify skips the signature and nothing else', async t => {
  const it = new Tokens(
    /** @type {any} */ (makeConfig({ audience: 'me' }, { insecure_skip_token_signature_verify: true })),
    {
      clock,
    },
  )
  t.match(it.connect(makeToken({ sub: '1', aud: 'me' }, 'whatever')), { user: '1' })
  t.match(it.subscribe(makeToken({ channel: 'x', aud: 'me' }, 'whatever')), { channel: 'x' })
  t.equal(
    thrown(() => it.connect(makeToken({ sub: '1' }, 'whatever'))),
    disconnects.invalidToken,
  )
  t.equal(
    thrown(() => it.connect(makeToken({ aud: 'me', exp: PAST }, 'whatever'))),
    errors.tokenExpired,
  )
  t.equal(
    thrown(() => it.connect(makeToken({ aud: 'me', channel: 'x' }, 'whatever'))),
    disconnects.invalidToken,
  )
  t.equal(
    thrown(() => it.connect('a.b')),
    disconnects.invalidToken,
  )
  const good = makeToken({ aud: 'me' }, 'whatever')
  for (const token of [`${good}.x`, good.replace('.', 'A.'), good.replace(/\.[^.]*$/, '')]) {
    t.equal(
      thrown(() => it.connect(token)),
      disconnects.invalidToken,
    )
  }
})

t.test('settings that cannot be used are named', async t => {
  const table = /** @type {[any, RegExp][]} */ ([
    [
      { audience: 'a', audience_regex: 'a' },
      /^client\.token\.audience and client\.token\.audience_regex cannot be combined; set only one of them$/,
    ],
    [
      { issuer: 'a', issuer_regex: 'a' },
      /^client\.token\.issuer and client\.token\.issuer_regex cannot be combined; set only one of them$/,
    ],
    [{ issuer_regex: '(' }, /^client\.token\.issuer_regex: invalid pattern "\("/],
    [{ user_id_claim: 'user-id' }, /^client\.token\.user_id_claim /],
    [{ rsa_public_key: 'nonsense' }, /^client\.token\.rsa_public_key /],
    [{ jwks_public_endpoint: 'nonsense' }, /^client\.token\.jwks_public_endpoint: /],
  ])
  for (const [settings, message] of table) t.throws(() => tokens(settings), { message })
  t.throws(() => tokens({}, {}, { enabled: true, ecdsa_public_key: 'x' }), {
    message: /^client\.subscription_token\.ecdsa_public_key /,
  })
  t.doesNotThrow(() => tokens({}, {}, { enabled: false, ecdsa_public_key: 'x' }))
})
