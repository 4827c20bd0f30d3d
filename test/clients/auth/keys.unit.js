import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import t from 'tap'
import { disconnects } from '../../../src/base/errors.js'
import { Tokens } from '../../../src/clients/auth/tokens.js'
import { encode, makeCertificate, makeConfig, makeToken, NOW, thrown } from './jwt.js'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
}
const ed = generateKeyPairSync('ed25519')

/** @param {import('node:crypto').KeyObject} key */
const pem = key => key.export({ type: 'spki', format: 'pem' }).toString()

/**
 * @param {Parameters<typeof makeConfig>[0]} settings
 * @param {number} [now] unix s
 */
const tokens = (settings, now = NOW) =>
  new Tokens(/** @type {any} */ (makeConfig(settings)), { clock: () => now * 1000 })

/**
 * @param {ReturnType<typeof tokens>} it
 * @param {string} token
 */
const outcome = (it, token) => thrown(() => it.connect(token)) ?? 'good'

t.test('HMAC', async t => {
  const it = tokens({ hmac_secret_key: 'sécret' })
  for (const alg of ['HS256', 'HS384', 'HS512']) {
    t.equal(outcome(it, makeToken({}, 'sécret', { alg })), 'good', alg)
    t.equal(outcome(it, makeToken({}, 'other', { alg })), disconnects.invalidToken, alg)
  }
  t.equal(outcome(it, makeToken({}, 'sécret', { typ: undefined })), 'good', 'typ is not needed')
  t.equal(outcome(it, makeToken({}, 'sécret', { alg: 'HS1' })), disconnects.invalidToken)
})

t.test('the previous HMAC key counts until its time', async t => {
  const settings = { hmac_secret_key: 'new', hmac_previous_secret_key: 'old' }
  const until = { ...settings, hmac_previous_secret_key_valid_until: NOW }
  const old = makeToken({}, 'old', { alg: 'HS384' })
  t.equal(outcome(tokens(settings), makeToken({}, 'new')), 'good')
  t.equal(outcome(tokens(settings), old), 'good', '0 = no limit')
  t.equal(outcome(tokens(until, NOW - 1), old), 'good')
  t.equal(outcome(tokens(until, NOW), old), 'good')
  t.equal(outcome(tokens(until, NOW + 1), old), disconnects.invalidToken)
  t.equal(outcome(tokens(until, NOW + 1), makeToken({}, 'new')), 'good')
  t.equal(outcome(tokens(settings), makeToken({}, 'older')), disconnects.invalidToken)
  t.equal(outcome(tokens({ hmac_secret_key: 'new' }), old), disconnects.invalidToken)

  let now = NOW - 1
  const it = new Tokens(/** @type {any} */ (makeConfig(until)), { clock: () => now * 1000 })
  t.equal(outcome(it, old), 'good')
  now = NOW + 1
  t.equal(outcome(it, old), disconnects.invalidToken, 'a token that was good before is not remembered')
})

t.test('RSA, by public key or certificate', async t => {
  const it = tokens({ rsa_public_key: pem(rsa.publicKey) })
  for (const alg of ['RS256', 'RS384', 'RS512']) {
    t.equal(outcome(it, makeToken({}, rsa.privateKey, { alg })), 'good', alg)
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    t.equal(outcome(it, makeToken({}, other, { alg })), disconnects.invalidToken, alg)
  }
  const certificate = makeCertificate(rsa)
  t.equal(
    outcome(tokens({ rsa_public_key: certificate }), makeToken({}, rsa.privateKey, { alg: 'RS256' })),
    'good',
  )
})

t.test('ECDSA, the algorithm of the curve only', async t => {
  for (const [alg, { publicKey, privateKey }] of Object.entries(ec)) {
    const it = tokens({ ecdsa_public_key: pem(publicKey) })
    t.equal(outcome(it, makeToken({}, privateKey, { alg })), 'good', alg)
    for (const other of Object.keys(ec)) {
      if (other === alg) continue
      const bad = disconnects.invalidToken
      t.equal(outcome(it, makeToken({}, privateKey, { alg: other })), bad, `${other} with the key of ${alg}`)
    }
  }
  const token = makeToken({}, ec.ES256.privateKey, { alg: 'ES256' })
  const input = token.slice(0, token.lastIndexOf('.'))
  const der = sign('sha256', Buffer.from(input), ec.ES256.privateKey).toString('base64url')
  t.equal(
    outcome(tokens({ ecdsa_public_key: pem(ec.ES256.publicKey) }), `${input}.${der}`),
    disconnects.invalidToken,
    'a signature in DER is none',
  )
})

t.test('several kinds at once: alg picks', async t => {
  const it = tokens({
    hmac_secret_key: 'secret',
    rsa_public_key: pem(rsa.publicKey),
    ecdsa_public_key: pem(ec.ES256.publicKey),
  })
  t.equal(outcome(it, makeToken({}, 'secret')), 'good')
  t.equal(outcome(it, makeToken({}, rsa.privateKey, { alg: 'RS512' })), 'good')
  t.equal(outcome(it, makeToken({}, ec.ES256.privateKey, { alg: 'ES256' })), 'good')
})

t.test('a public key is no HMAC secret', async t => {
  const it = tokens({ rsa_public_key: pem(rsa.publicKey), ecdsa_public_key: pem(ec.ES256.publicKey) })
  const both = tokens({ hmac_secret_key: 'secret', rsa_public_key: pem(rsa.publicKey) })
  for (const secret of [pem(rsa.publicKey), pem(ec.ES256.publicKey), '', 'secret']) {
    t.equal(outcome(it, makeToken({}, secret)), disconnects.invalidToken)
    if (secret !== 'secret') t.equal(outcome(both, makeToken({}, secret)), disconnects.invalidToken)
  }
  t.equal(
    outcome(tokens({ hmac_secret_key: 'secret' }), makeToken({}, rsa.privateKey, { alg: 'RS256' })),
    disconnects.invalidToken,
  )
})

t.test('none, PS* and EdDSA are refused', async t => {
  const it = tokens({
    hmac_secret_key: 'secret',
    rsa_public_key: pem(rsa.publicKey),
    ecdsa_public_key: pem(ec.ES256.publicKey),
  })
  const hmac = (/** @type {string} */ input) =>
    createHmac('sha256', 'secret').update(input).digest('base64url')
  for (const alg of ['none', 'None', 'NONE', '', 'HS', 'HS1', 'toString', '__proto__']) {
    const input = `${encode({ alg })}.${encode({})}`
    t.equal(outcome(it, `${input}.`), disconnects.invalidToken, alg)
    t.equal(outcome(it, `${input}.${hmac(input)}`), disconnects.invalidToken, alg)
  }
  for (const alg of ['PS256', 'PS384', 'PS512']) {
    const input = `${encode({ alg })}.${encode({})}`
    const key = { key: rsa.privateKey, padding: 6, saltLength: -1 }
    const signature = sign(`sha${alg.slice(2)}`, Buffer.from(input), key).toString('base64url')
    t.equal(outcome(it, `${input}.${signature}`), disconnects.invalidToken, alg)
  }
  t.equal(outcome(it, makeToken({}, ed.privateKey, { alg: 'EdDSA' })), disconnects.invalidToken)
})

t.test('without any key every token is bad', async t => {
  const it = tokens({})
  t.equal(outcome(it, makeToken({}, '')), disconnects.invalidToken)
  t.equal(outcome(it, `${encode({ alg: 'none' })}.${encode({})}.`), disconnects.invalidToken)
  t.equal(outcome(it, makeToken({}, rsa.privateKey, { alg: 'RS256' })), disconnects.invalidToken)
})

t.test('a key that cannot be used ends the start, and its option is named', async t => {
  const secp256k1 = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey
  const table = /** @type {[any, RegExp][]} */ ([
    [{ rsa_public_key: 'x' }, /^client\.token\.rsa_public_key is not a public key or certificate in PEM$/],
    [{ rsa_public_key: pem(rsa.publicKey).slice(0, 100) }, /^client\.token\.rsa_public_key is not /],
    [
      { rsa_public_key: rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() },
      /^client\.token\.rsa_public_key is a private key/,
    ],
    [
      { rsa_public_key: pem(ec.ES256.publicKey) },
      /^client\.token\.rsa_public_key is a key of type ec, not rsa$/,
    ],
    [
      { ecdsa_public_key: pem(rsa.publicKey) },
      /^client\.token\.ecdsa_public_key is a key of type rsa, not ec$/,
    ],
    [{ ecdsa_public_key: pem(ed.publicKey) }, /^client\.token\.ecdsa_public_key is a key of type ed25519/],
    [
      { ecdsa_public_key: pem(secp256k1) },
      /^client\.token\.ecdsa_public_key is a key on the curve secp256k1/,
    ],
  ])
  for (const [settings, message] of table) t.throws(() => tokens(settings), { message })
})
