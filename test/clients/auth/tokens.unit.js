import t from 'tap'
import { Disconnect, disconnects, errors, ReplyError } from '../../../src/base/errors.js'
import { Tokens } from '../../../src/clients/auth/tokens.js'
import { encode, makeConfig, makeToken, NOW, thrown } from './jwt.js'

const SECRET = 'secret'
const PAST = NOW - 10
const FUTURE = NOW + 10
const { invalidToken } = disconnects
const { permissionDenied, tokenExpired, expired } = errors

const tokens = (token = {}, client = {}, subscription = {}) =>
  new Tokens(/** @type {any} */ (makeConfig({ hmac_secret_key: SECRET, ...token }, client, subscription)), {
    clock: () => NOW * 1000,
  })
const plain = tokens()

/** @returns {any} */
const connect = (claims, it = plain) => it.connect(makeToken(claims, SECRET))
/** @returns {any} */
const subscribe = (claims, it = plain) => it.subscribe(makeToken(claims, SECRET))
/** @param {'connect' | 'subscribe'} kind */
const refusal = (kind, token, it = plain) => thrown(() => it[kind](token))
const connectError = (claims, it = plain) => refusal('connect', makeToken(claims, SECRET), it)
const subscribeError = (claims, it = plain) =>
  refusal('subscribe', makeToken({ channel: 'x', ...claims }, SECRET), it)

t.test('a connection token without claims is an anonymous user that never expires', async t => {
  const stamp = { uid: '', issuedAt: 0 }
  const empty = {
    user: '',
    expireAt: 0,
    info: undefined,
    meta: undefined,
    subs: new Map(),
    caps: null,
    labels: null,
    stamp,
  }
  t.same(connect({}), empty)
  const names = [
    'sub',
    'exp',
    'info',
    'meta',
    'channels',
    'subs',
    'channel',
    'aud',
    'caps',
    'labels',
    'jti',
    'iat',
  ]
  t.same(connect(Object.fromEntries(names.map(name => [name, null]))), empty)
})

t.test('reads the user and the expiry', async t => {
  t.match(connect({ sub: '42', exp: FUTURE }), { user: '42', expireAt: FUTURE })
  for (const [claims, expireAt, why] of /** @type {any[][]} */ ([
    [{ exp: FUTURE, expire_at: FUTURE + 5 }, FUTURE + 5, 'expire_at overrides exp'],
    [{ expire_at: FUTURE }, FUTURE],
    [{ exp: FUTURE, expire_at: 0 }, 0, '0 is never'],
    [{ exp: FUTURE, expire_at: -1 }, 0, 'negative is never'],
    [{ exp: NOW + 0.5 }, NOW + 1, 'fractions are allowed'],
    [{ exp: FUTURE, nbf: NOW, iat: FUTURE, jti: 'x' }, FUTURE, 'iat and jti have no effect on it'],
  ]))
    t.equal(connect(claims).expireAt, expireAt, why)
})

t.test('reads jti and iat', async t => {
  t.same(connect({ jti: 'a', iat: 5 }).stamp, { uid: 'a', issuedAt: 5 })
  t.same(subscribe({ channel: 'x', iat: '5.5' }).stamp, { uid: '', issuedAt: 5.5 })
  t.same(connect({ jti: 'é'.repeat(127) }).stamp.uid.length, 127)
  t.same(connect({ jti: 'é'.repeat(128) }).stamp, { uid: '', issuedAt: 0 }, 'a long jti is not kept')
  t.equal(connect({}).stamp, subscribe({ channel: 'x' }).stamp, 'tokens without both share one object')
})

t.test('refuses tokens that are expired, not yet valid, or with a past expire_at', async t => {
  for (const [claims, error] of [
    [{ exp: PAST }, tokenExpired],
    [{ exp: NOW }, tokenExpired],
    [{ exp: 0 }, tokenExpired],
    [{ exp: FUTURE, nbf: FUTURE }, tokenExpired],
    [{ exp: PAST, expire_at: 0 }, tokenExpired],
    [{ exp: PAST, expire_at: FUTURE }, tokenExpired],
    [{ exp: FUTURE, expire_at: PAST }, expired],
    [{ expire_at: NOW }, expired],
  ]) {
    t.equal(connectError(claims), error, JSON.stringify(claims))
    t.equal(subscribeError(claims), error, JSON.stringify(claims))
  }
})

t.test('info, meta and data keep their original text on one line', async t => {
  const claims = connect(`{
    "info": {"n": 12345678901234567890,\r\n "f":1.0}, "meta": ["\\u0041", 1e2], "sub":"1",
    "subs": {"n\\u0065ws": {"data" : {"w":1.50} , "info":"x"}}}`)
  t.equal(claims.info, '{"n": 12345678901234567890, "f":1.0}')
  t.equal(claims.meta, '["\\u0041", 1e2]')
  t.same(claims.subs, new Map([['news', { info: '"x"', data: '{"w":1.50}' }]]))
  t.match(subscribe('{"channel":"x","info":1.0,"data":[2.0]}'), { info: '1.0', data: '[2.0]' })
})

t.test('b64info and b64data have precedence unless they are empty', async t => {
  const base64 = text => Buffer.from(text).toString('base64')
  for (const [b64info, info, why] of [
    [base64('{"b":1}'), '{"b":1}'],
    ['', '{"a":1}'],
    [base64('no json\n{'), '"no json\\n{"', 'bytes that are not JSON become a string'],
    [base64('{\n"b":1\n}'), '{"b":1}', 'JSON on one line'],
  ])
    t.equal(connect({ info: { a: 1 }, b64info }).info, info, why)
  const both = { info: 1, b64info: base64('2'), data: 3, b64data: base64('4') }
  t.match(subscribe({ channel: 'x', ...both }), { info: '2', data: '4' })
  t.same(connect({ subs: { x: both } }).subs.get('x'), { info: '2', data: '4' })
  for (const bad of ['a', 'YQ', 'YQ=', 'Y_Q=', '!!!!', 'YQ==YQ==']) {
    t.equal(connectError({ b64info: bad }), invalidToken, bad)
    t.equal(connectError({ subs: { x: { b64data: bad } } }), invalidToken, bad)
    t.equal(subscribeError({ b64data: bad }), permissionDenied, bad)
  }
})

t.test('reads channels and subs; non-empty subs replace channels', async t => {
  const names = claims => [...connect(claims).subs.keys()]
  t.same([...connect({ channels: ['a', 'a'] }).subs], [['a', {}]])
  t.same(names({ channels: ['a', 'b'] }), ['a', 'b'])
  t.same(names({ channels: ['a'], subs: { b: {}, c: null } }), ['b', 'c'], 'subs replace channels')
  t.same(names({ channels: ['a'], subs: {} }), ['a'], 'empty subs do not')
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
  for (const none of [{}, { presence: null }])
    t.equal(subscribe({ channel: 'x', override: none }).override, undefined)
})

t.test('a subscription token has a channel, a user and an optional client', async t => {
  const claims = { user: '42', channel: '$x:1', client: 'c1', expireAt: FUTURE }
  t.match(subscribe({ sub: '42', channel: '$x:1', exp: FUTURE, client: 'c1' }), {
    ...claims,
    info: undefined,
    data: undefined,
    override: undefined,
  })
  t.match(subscribe({ channel: 'x', client: '' }), { user: '', client: undefined, expireAt: 0 })
})

t.test('connection and subscription tokens are not interchangeable', async t => {
  for (const claims of [{ sub: '42' }, { exp: PAST }]) {
    t.equal(connectError({ ...claims, channel: 'x' }), invalidToken)
    for (const channel of [undefined, '']) t.equal(subscribeError({ ...claims, channel }), permissionDenied)
  }
})

for (const [name, settings, good, bad] of [
  [
    'text',
    { audience: 'me', issuer: 'them' },
    [
      { aud: 'me', iss: 'them' },
      { aud: ['you', 'me'], iss: 'them' },
    ],
    [
      {},
      { aud: 'me' },
      { iss: 'them' },
      { aud: 'you', iss: 'them' },
      { aud: [], iss: 'them' },
      { aud: 'me2', iss: 'them' },
      { aud: 'me', iss: 'Them' },
    ],
  ],
  [
    'pattern, which need not match all of it',
    { audience_regex: '^me-\\d+$', issuer_regex: 'them' },
    [
      { aud: 'me-1', iss: 'x.them.y' },
      { aud: ['you', 'me-2'], iss: 'them' },
    ],
    [{}, { aud: 'me-1' }, { iss: 'them' }, { aud: 'me-x', iss: 'them' }, { aud: [], iss: 'them' }],
  ],
])
  t.test(`audience and issuer by ${name}`, async t => {
    const it = tokens(settings)
    for (const claims of /** @type {any[]} */ (good)) {
      t.equal(connectError(claims, it), undefined, JSON.stringify(claims))
      t.equal(connectError({ ...claims, exp: PAST }, it), tokenExpired)
    }
    for (const claims of /** @type {any[]} */ (bad)) {
      t.equal(connectError(claims, it), invalidToken, JSON.stringify(claims))
      t.equal(connectError({ ...claims, exp: PAST }, it), invalidToken, 'before the expiry')
      t.equal(subscribeError(claims, it), permissionDenied)
    }
  })

t.test('user_id_claim names the claim of the user', async t => {
  const it = tokens({ user_id_claim: 'user_id' })
  t.equal(connect({ sub: '1', user_id: '2' }, it).user, '2')
  t.equal(connect({ sub: '1' }, it).user, '', 'sub is ignored')
  t.equal(subscribe({ channel: 'x', user_id: '2' }, it).user, '2')
  t.equal(connectError({ user_id: 2 }, it), invalidToken)
  t.equal(connect({}, tokens({ user_id_claim: 'constructor' })).user, '', 'inherited members are not claims')
})

t.test('subscription tokens may have their own settings', async t => {
  const other = { enabled: true, hmac_secret_key: 'other', issuer: 'b', user_id_claim: 'uid' }
  const it = tokens({ issuer: 'a' }, {}, other)
  const own = claims => makeToken(claims, 'other')
  t.match(connect({ sub: '1', iss: 'a' }, it), { user: '1' })
  t.match(it.subscribe(own({ uid: '1', sub: '2', iss: 'b', channel: 'x' })), { user: '1' })
  t.equal(refusal('connect', own({ sub: '1', iss: 'a' }), it), invalidToken)
  t.equal(subscribeError({ iss: 'b' }, it), permissionDenied)
  t.equal(refusal('subscribe', own({ iss: 'a', channel: 'x' }), it), permissionDenied)
  const off = tokens({}, {}, { ...other, enabled: false })
  t.equal(subscribeError({}, off), undefined)
  t.equal(refusal('subscribe', own({ channel: 'x' }), off), permissionDenied)
})

t.test('an expired token is refused even if tokens do not end connections', async t => {
  const endless = (claims, key = SECRET) => {
    try {
      return /** @type {any} */ (plain.connect(makeToken(claims, key), false)).expireAt
    } catch (error) {
      return error
    }
  }
  t.equal(endless({ exp: FUTURE }), 0)
  t.equal(endless({ exp: FUTURE, expire_at: PAST }), 0)
  t.equal(endless({ exp: PAST }), tokenExpired)
  t.equal(endless({}, 'wrong'), invalidToken)
})

t.test('insecure_skip_token_signature_verify skips only the signature check', async t => {
  const it = tokens(
    { audience: 'me', hmac_secret_key: 'other' },
    { insecure_skip_token_signature_verify: true },
  )
  t.match(connect({ sub: '1', aud: 'me' }, it), { user: '1' })
  t.match(subscribe({ channel: 'x', aud: 'me' }, it), { channel: 'x' })
  t.equal(connectError({ sub: '1' }, it), invalidToken)
  t.equal(connectError({ aud: 'me', exp: PAST }, it), tokenExpired)
  t.equal(connectError({ aud: 'me', channel: 'x' }, it), invalidToken)
  const good = makeToken({ aud: 'me' }, 'any')
  for (const token of ['a.b', `${good}.x`, good.replace('.', 'A.'), good.replace(/\.[^.]*$/, '')])
    t.equal(refusal('connect', token, it), invalidToken, token)
})

t.test('the error for an invalid setting names it', async t => {
  for (const [settings, message] of /** @type {[any, RegExp][]} */ ([
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
    [{ jwks_public_endpoint: 'nonsense' }, /^client\.token\.jwks_public_endpoint: /],
  ]))
    t.throws(() => tokens(settings), { message })
  t.throws(() => tokens({}, {}, { enabled: true, ecdsa_public_key: 'x' }), {
    message: /^client\.subscription_token\.ecdsa_public_key /,
  })
  t.doesNotThrow(() => tokens({}, {}, { enabled: false, ecdsa_public_key: 'x' }))
})

/** Claims of a wrong type, of both kinds of tokens and of each. */
const wrong = {
  common: [
    ...[42, {}].map(sub => ({ sub })),
    ...['', ' 1800000100', '0x6b49d264', '1800000100s', '1e999', true, []].map(exp => ({ exp })),
    ...[1, {}].map(jti => ({ jti })),
    ...['x', {}, [], true].map(iat => ({ iat })),
    { nbf: 'x' },
    ...['1', 1.5].map(expire_at => ({ expire_at })),
    ...[1, ['a', 1], {}].map(aud => ({ aud })),
    ...[1, ['a']].map(iss => ({ iss })),
    { b64info: 1 },
    { channel: 1 },
  ],
  connect: [
    ...['x', {}, [1], [''], [null]].map(channels => ({ channels })),
    ...[[], 'x', { x: 1 }, { x: [] }, { '': {} }].map(subs => ({ subs })),
    ...[1, { presence: true }, { presence: { value: 1 } }].map(override => ({ subs: { x: { override } } })),
    { subs: { x: { b64data: 1 } } },
    { subs: { x: {} }, channels: [1] },
  ],
  subscribe: [
    { channel: ['x'] },
    { client: 1 },
    ...[[], { presence: 1 }, { force_recovery: { value: 'true' } }].map(override => ({ override })),
    { b64data: {} },
  ],
}

t.test('a claim of the wrong type makes a token invalid, even if it is expired', async t => {
  const ofConnect = [...wrong.common, ...wrong.connect]
  const payloads = [...ofConnect, ...ofConnect.map(claims => ({ exp: PAST, ...claims })), '{"exp":1e999}']
  t.same(
    payloads.filter(payload => connectError(payload) !== invalidToken),
    [],
  )
  t.same(
    [...wrong.common, ...wrong.subscribe].filter(claims => subscribeError(claims) !== permissionDenied),
    [],
  )
})

t.test('a key id must be a string, even where it is not used', async t => {
  const skipping = tokens({}, { insecure_skip_token_signature_verify: true })
  const error = (kind, kid, it) =>
    refusal(kind, makeToken({ channel: kind === 'subscribe' ? 'x' : '' }, SECRET, { kid }), it)
  for (const it of [plain, skipping]) {
    for (const kid of [5, 0, 1.5, true, {}, []]) {
      t.equal(error('connect', kid, it), invalidToken, JSON.stringify(kid))
      t.equal(error('subscribe', kid, it), permissionDenied, JSON.stringify(kid))
    }
    for (const kid of ['5', '', null, undefined]) t.equal(error('subscribe', kid, it), undefined, `${kid}`)
  }
})

t.test('malformed tokens are invalid', async t => {
  const good = makeToken({ sub: '42', channel: 'x' }, SECRET)
  const [header, payload, signature] = good.split('.')
  const garbage = [
    ...[
      '',
      '.',
      '..',
      '...',
      'a',
      'a.b',
      'a.b.c',
      'a.b.c.d',
      '😀.😀.😀',
      '.'.repeat(100_000),
      'x'.repeat(1_000_000),
    ],
    ...[`${good}.`, `.${good}`, `${good}.x`, ` ${good}`, `${good}\n`, good.replaceAll('.', ',')],
    ...[
      `${header}.${payload}`,
      `${header}.${payload}.`,
      `${header}..${signature}`,
      `.${payload}.${signature}`,
    ],
    `${header}=.${payload}.${signature}`,
    `${header}.${payload}x.${signature}`,
    `${header}.${'A'.repeat(1_000_001)}.${signature}`,
    ...[`${signature}=`, `${signature}!`, signature.slice(0, -2)].map(last => `${header}.${payload}.${last}`),
    ...['[]', 'null', '{', { alg: 1 }, {}].map(first => `${encode(first)}.${payload}.${signature}`),
    ...['[]', 'null', '1', '"x"', '{', '', '{"sub":"\u0000', '['.repeat(100_000)].map(text =>
      makeToken(text, SECRET),
    ),
    makeToken({ channel: 'x' }, SECRET, { crit: ['b64'], b64: false }),
  ]
  const shown = token => String(token).slice(0, 60)
  for (const [kind, error] of /** @type {const} */ ([
    ['connect', invalidToken],
    ['subscribe', permissionDenied],
  ]))
    t.same(
      [...garbage, undefined, null, 1, {}, [], Buffer.from(good)]
        .filter(token => refusal(kind, token) !== error)
        .map(shown),
      [],
      kind,
    )
})

t.test('random claims and damaged tokens give a documented error', async t => {
  let seed = 7
  const random = n => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return Math.floor((seed / 2 ** 32) * n)
  }
  const values = [
    ...[undefined, null, true, 0, -1, 1.5, FUTURE, PAST, '', 'x', 'YQ==', [], ['x'], [1], {}, { x: {} }],
    { value: true },
    { x: { info: 1, data: null, override: { presence: { value: 1 } } } },
  ]
  const names =
    'sub exp nbf expire_at aud iss info b64info channels subs meta channel client data b64data override'.split(
      ' ',
    )
  let good = 0
  for (let round = 0; round < 2000; round++) {
    const claims = Object.fromEntries(
      names.filter(() => random(4) === 0).map(name => [name, values[random(values.length)]]),
    )
    let token = makeToken(claims, SECRET)
    if (random(4) === 0) {
      const at = random(token.length)
      token = token.slice(0, at) + String.fromCharCode(33 + random(94)) + token.slice(at + random(3))
    }
    for (const kind of /** @type {const} */ (['connect', 'subscribe'])) {
      const error = refusal(kind, token)
      if (error === undefined) good++
      else if (!(error instanceof ReplyError) && !(error instanceof Disconnect))
        return t.fail(`${kind} ${JSON.stringify(claims)}: ${error.stack}`)
    }
  }
  t.ok(good > 40, `${good} valid ones`)
})
