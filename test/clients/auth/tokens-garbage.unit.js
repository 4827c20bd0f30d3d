import t from 'tap'
import { Disconnect, disconnects, errors, ReplyError } from '../../../src/base/errors.js'
import { Tokens } from '../../../src/clients/auth/tokens.js'
import { encode, makeConfig, makeToken, NOW, thrown } from './jwt.js'

const clock = () => NOW * 1000
const SECRET = 'secret'
const PAST = NOW - 10
const FUTURE = NOW + 10

/** @param {Parameters<typeof makeConfig>} settings */
const tokens = (...settings) =>
  new Tokens(
    /** @type {any} */ (makeConfig({ hmac_secret_key: SECRET, ...settings[0] }, settings[1], settings[2])),
    { clock },
  )
const plain = tokens({})

/** @param {unknown} payload @param {any} [it] @returns {any} */
const connect = (payload, it = plain) => it.connect(makeToken(payload, SECRET))
/** @param {unknown} payload @param {any} [it] @returns {any} */
const subscribe = (payload, it = plain) => it.subscribe(makeToken(payload, SECRET))

t.test('claims of a wrong type make a token bad', async t => {
  const common = [
    { sub: 42 },
    { sub: {} },
    { exp: '' },
    { exp: ' 1800000100' },
    { exp: '0x6b49d264' },
    { exp: '1800000100s' },
    { exp: '1e999' },
    { jti: 1 },
    { jti: {} },
    { exp: true },
    { nbf: 'x' },
    { expire_at: '1' },
    { expire_at: 1.5 },
    { aud: 1 },
    { aud: ['a', 1] },
    { aud: {} },
    { iss: 1 },
    { iss: ['a'] },
    { b64info: 1 },
    { exp: [] },
  ]
  const ofConnect = [
    { channels: 'x' },
    { channels: {} },
    { channels: [1] },
    { channels: [''] },
    { channels: [null] },
    { subs: [] },
    { subs: 'x' },
    { subs: { x: 1 } },
    { subs: { x: [] } },
    { subs: { '': {} } },
    { subs: { x: { override: 1 } } },
    { subs: { x: { override: { presence: true } } } },
    { subs: { x: { override: { presence: { value: 1 } } } } },
    { subs: { x: { b64data: 1 } } },
    { channel: 1 },
    { subs: { x: {} }, channels: [1] },
  ]
  const ofSubscribe = [
    { channel: 1 },
    { channel: ['x'] },
    { client: 1 },
    { override: [] },
    { override: { presence: 1 } },
    { b64data: {} },
    { override: { force_recovery: { value: 'true' } } },
  ]
  const payloads = [
    ...common,
    ...ofConnect,
    ...[...common, ...ofConnect].map(claims => ({ exp: PAST, ...claims })),
    '{"exp":1e999}',
  ]
  t.same(
    payloads.filter(payload => thrown(() => connect(payload)) !== disconnects.invalidToken),
    [],
    'connection tokens, also expired ones',
  )
  const subscriptions = [...common, ...ofSubscribe].map(claims => ({ channel: 'x', ...claims }))
  t.same(
    subscriptions.filter(payload => thrown(() => subscribe(payload)) !== errors.permissionDenied),
    [],
    'subscription tokens',
  )
})

t.test('a key id must be text, also where no key is looked up by it', async t => {
  /** @param {unknown} kid */
  const signed = kid => makeToken({ sub: '42', channel: 'x' }, SECRET, { kid })
  const skipping = tokens({}, { insecure_skip_token_signature_verify: true })
  for (const kid of [5, 0, 1.5, true, {}, []]) {
    for (const it of [plain, skipping]) {
      const connection = makeToken({ sub: '42' }, SECRET, { kid })
      t.equal(
        thrown(() => it.connect(connection)),
        disconnects.invalidToken,
        `connect ${JSON.stringify(kid)}`,
      )
      t.equal(
        thrown(() => it.subscribe(signed(kid))),
        errors.permissionDenied,
        `subscribe ${JSON.stringify(kid)}`,
      )
    }
  }
  for (const kid of ['5', '', null, undefined]) {
    t.equal(
      thrown(() => plain.subscribe(signed(kid))),
      undefined,
      `text or nothing: ${JSON.stringify(kid)}`,
    )
  }
})

t.test('garbage is a bad token and never anything else', async t => {
  const good = makeToken({ sub: '42', channel: 'x' }, SECRET)
  const [header, payload, signature] = good.split('.')
  const garbage = [
    '',
    '.',
    '..',
    '...',
    'a',
    'a.b',
    'a.b.c',
    'a.b.c.d',
    `${good}.`,
    `.${good}`,
    `${good}.x`,
    `${header}.${payload}`,
    `${header}.${payload}.`,
    `${header}..${signature}`,
    `.${payload}.${signature}`,
    `${header}=.${payload}.${signature}`,
    `${header}.${payload}.${signature}=`,
    `${header}.${payload}.${signature}!`,
    ` ${good}`,
    `${good}\n`,
    `${header}.${payload}.${signature.slice(0, -2)}`,
    `${header}.${payload}x.${signature}`,
    good.replaceAll('.', ','),
    `${encode('[]')}.${payload}.${signature}`,
    `${encode('null')}.${payload}.${signature}`,
    `${encode('{')}.${payload}.${signature}`,
    `${encode({ alg: 1 })}.${payload}.${signature}`,
    `${encode({})}.${payload}.${signature}`,
    '😀.😀.😀',
    makeToken('[]', SECRET),
    makeToken('null', SECRET),
    makeToken('1', SECRET),
    makeToken('"x"', SECRET),
    makeToken('{', SECRET),
    makeToken('', SECRET),
    makeToken('{"sub":"\u0000', SECRET),
    makeToken('['.repeat(100_000), SECRET),
    'x'.repeat(1_000_000),
    `${header}.${'A'.repeat(1_000_001)}.${signature}`,
    `${'.'.repeat(100_000)}`,
    makeToken({ channel: 'x' }, SECRET, { crit: ['b64'], b64: false }),
  ]
  const noStrings = [undefined, null, 1, {}, [], Buffer.from(good)]
  const shown = (/** @type {any} */ token) => String(token).slice(0, 60)
  t.same(
    [...garbage, ...noStrings]
      .filter(token => thrown(() => plain.connect(/** @type {any} */ (token))) !== disconnects.invalidToken)
      .map(shown),
    [],
    'as connection tokens',
  )
  t.same(
    garbage.filter(token => thrown(() => plain.subscribe(token)) !== errors.permissionDenied).map(shown),
    [],
    'as subscription tokens',
  )
})

t.test('generated garbage: an answer of the table, whatever comes', async t => {
  let seed = 7
  const random = (/** @type {number} */ n) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return Math.floor((seed / 2 ** 32) * n)
  }
  const values = [
    undefined,
    null,
    true,
    0,
    -1,
    1.5,
    FUTURE,
    PAST,
    '',
    'x',
    'YQ==',
    [],
    ['x'],
    [1],
    {},
    { x: {} },
    { value: true },
    { x: { info: 1, data: null, override: { presence: { value: 1 } } } },
  ]
  const names = [
    'sub',
    'exp',
    'nbf',
    'expire_at',
    'aud',
    'iss',
    'info',
    'b64info',
    'channels',
    'subs',
    'meta',
    'channel',
    'client',
    'data',
    'b64data',
    'override',
  ]
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
      const error = thrown(() => plain[kind](token))
      if (error === undefined) good++
      else if (!(error instanceof ReplyError) && !(error instanceof Disconnect)) {
        return t.fail(`${kind} ${JSON.stringify(claims)}: ${error.stack}`)
      }
    }
  }
  t.ok(good > 40, `${good} good ones among them`)
})
