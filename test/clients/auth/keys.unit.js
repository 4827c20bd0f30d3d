import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import t from 'tap'
import { disconnects } from '../../../src/base/errors.js'
import { Tokens } from '../../../src/clients/auth/tokens.js'
import { encode, makeCertificate, makeConfig, makeToken, NOW, thrown } from './jwt.js'

const { invalidToken } = disconnects
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
}
const ed = generateKeyPairSync('ed25519')

const pem = key => key.export({ type: 'spki', format: 'pem' }).toString()
const RSA = pem(rsa.publicKey)
const EC = pem(ec.ES256.publicKey)

const tokens = (settings, clock = () => NOW) =>
  new Tokens(/** @type {any} */ (makeConfig(settings)), { clock: () => clock() * 1000 })

const outcome = (it, token) => thrown(() => it.connect(token)) ?? 'good'

t.test('accepts HS256, HS384 and HS512 tokens with a valid signature', async t => {
  const it = tokens({ hmac_secret_key: 'sécret' })
  for (const alg of ['HS256', 'HS384', 'HS512']) {
    t.equal(outcome(it, makeToken({}, 'sécret', { alg })), 'good', alg)
    t.equal(outcome(it, makeToken({}, 'other', { alg })), invalidToken, alg)
  }
  t.equal(outcome(it, makeToken({}, 'sécret', { typ: undefined })), 'good', 'typ is optional')
  t.equal(outcome(it, makeToken({}, 'sécret', { alg: 'HS1' })), invalidToken)
})

t.test('the previous HMAC key expires at its configured time', async t => {
  const both = { hmac_secret_key: 'new', hmac_previous_secret_key: 'old' }
  let now = NOW
  const unlimited = tokens(both)
  const until = tokens({ ...both, hmac_previous_secret_key_valid_until: NOW }, () => now)
  const old = makeToken({}, 'old', { alg: 'HS384' })
  t.equal(outcome(unlimited, makeToken({}, 'new')), 'good')
  t.equal(outcome(unlimited, old), 'good', '0 is unlimited')
  t.equal(outcome(unlimited, makeToken({}, 'older')), invalidToken)
  for (now of [NOW - 1, NOW]) t.equal(outcome(until, old), 'good')
  now = NOW + 1
  t.equal(outcome(until, old), invalidToken, 'also a token that was valid before')
  t.equal(outcome(until, makeToken({}, 'new')), 'good')
  t.equal(outcome(tokens({ hmac_secret_key: 'new' }), old), invalidToken)
})

t.test('accepts RSA tokens, by public key or certificate', async t => {
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  for (const key of [RSA, makeCertificate(rsa)]) {
    const it = tokens({ rsa_public_key: key })
    for (const alg of ['RS256', 'RS384', 'RS512']) {
      t.equal(outcome(it, makeToken({}, rsa.privateKey, { alg })), 'good', alg)
      t.equal(outcome(it, makeToken({}, other, { alg })), invalidToken, alg)
    }
  }
})

t.test('accepts ECDSA tokens with the algorithm of the curve only', async t => {
  for (const [curve, { publicKey, privateKey }] of Object.entries(ec)) {
    const it = tokens({ ecdsa_public_key: pem(publicKey) })
    for (const alg of Object.keys(ec)) {
      const expected = alg === curve ? 'good' : invalidToken
      t.equal(outcome(it, makeToken({}, privateKey, { alg })), expected, `${alg} with the key of ${curve}`)
    }
  }
  const token = makeToken({}, ec.ES256.privateKey, { alg: 'ES256' })
  const input = token.slice(0, token.lastIndexOf('.'))
  const der = sign('sha256', Buffer.from(input), ec.ES256.privateKey).toString('base64url')
  t.equal(outcome(tokens({ ecdsa_public_key: EC }), `${input}.${der}`), invalidToken, 'DER is no signature')
})

t.test('with several kinds of keys, alg selects the key', async t => {
  const it = tokens({ hmac_secret_key: 'secret', rsa_public_key: RSA, ecdsa_public_key: EC })
  t.equal(outcome(it, makeToken({}, 'secret')), 'good')
  t.equal(outcome(it, makeToken({}, rsa.privateKey, { alg: 'RS512' })), 'good')
  t.equal(outcome(it, makeToken({}, ec.ES256.privateKey, { alg: 'ES256' })), 'good')
})

t.test('a public key cannot be used as an HMAC secret', async t => {
  const publicOnly = tokens({ rsa_public_key: RSA, ecdsa_public_key: EC })
  const both = tokens({ hmac_secret_key: 'secret', rsa_public_key: RSA })
  for (const secret of [RSA, EC, '']) {
    t.equal(outcome(publicOnly, makeToken({}, secret)), invalidToken)
    t.equal(outcome(both, makeToken({}, secret)), invalidToken)
  }
  t.equal(outcome(publicOnly, makeToken({}, 'secret')), invalidToken)
  const signed = makeToken({}, rsa.privateKey, { alg: 'RS256' })
  t.equal(outcome(tokens({ hmac_secret_key: 'secret' }), signed), invalidToken)
})

t.test('the algorithms none, PS* and EdDSA are refused', async t => {
  const it = tokens({ hmac_secret_key: 'secret', rsa_public_key: RSA, ecdsa_public_key: EC })
  for (const alg of ['none', 'None', 'NONE', '', 'HS', 'HS1', 'toString', '__proto__']) {
    const input = `${encode({ alg })}.${encode({})}`
    const hmac = createHmac('sha256', 'secret').update(input).digest('base64url')
    for (const signature of ['', hmac]) t.equal(outcome(it, `${input}.${signature}`), invalidToken, alg)
  }
  for (const alg of ['PS256', 'PS384', 'PS512']) {
    const input = `${encode({ alg })}.${encode({})}`
    const key = { key: rsa.privateKey, padding: 6, saltLength: -1 }
    const signature = sign(`sha${alg.slice(2)}`, Buffer.from(input), key).toString('base64url')
    t.equal(outcome(it, `${input}.${signature}`), invalidToken, alg)
  }
  t.equal(outcome(it, makeToken({}, ed.privateKey, { alg: 'EdDSA' })), invalidToken)
})

t.test('without a key, every token is invalid', async t => {
  const unsigned = `${encode({ alg: 'none' })}.${encode({})}.`
  for (const token of [makeToken({}, ''), unsigned, makeToken({}, rsa.privateKey, { alg: 'RS256' })])
    t.equal(outcome(tokens({}), token), invalidToken)
})

t.test('the error for an unusable key names its option', async t => {
  const secp256k1 = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey
  const privateKey = rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  for (const [option, key, message] of [
    ['rsa_public_key', 'x', 'is not a public key or certificate in PEM$'],
    ['rsa_public_key', RSA.slice(0, 100), 'is not '],
    ['rsa_public_key', privateKey, 'is a private key'],
    ['rsa_public_key', EC, 'is a key of type ec, not rsa$'],
    ['ecdsa_public_key', RSA, 'is a key of type rsa, not ec$'],
    ['ecdsa_public_key', pem(ed.publicKey), 'is a key of type ed25519'],
    ['ecdsa_public_key', pem(secp256k1), 'is a key on the curve secp256k1'],
  ])
    t.throws(() => tokens({ [option]: key }), {
      message: new RegExp(`^client\\.token\\.${option} ${message}`),
    })
})
