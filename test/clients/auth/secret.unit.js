import t from 'tap'
import { createSecretCheck } from '../../../src/clients/auth/secret.js'

t.test('only the same bytes are equal', async t => {
  const matches = createSecretCheck('apikey')
  t.equal(matches('apikey'), true)
  t.equal(matches(Buffer.from('apikey')), true)
  for (const given of ['', 'apike', 'apike€', 'apikeé', 'apikey ', 'Apikey', 'apikey\0', 'apikeyapikey']) {
    t.equal(matches(given), false, JSON.stringify(given))
    t.equal(matches('apikey'), true, 'also after a wrong one')
  }
})

t.test('characters beyond ASCII', async t => {
  const matches = createSecretCheck('schlüssel€')
  t.equal(matches('schlüssel€'), true)
  t.equal(matches('schlüsselé'), false)
  // Another spelling of the same letter.
  t.equal(matches('schlüssel€'.normalize('NFD')), false)
})

t.test('secrets of any length, as text and as bytes', t => {
  for (const length of [1, 42, 43, 127, 128, 129, 1000]) {
    for (const secret of ['k'.repeat(length), '€'.repeat(length)]) {
      for (const matches of [createSecretCheck(secret), createSecretCheck(Buffer.from(secret))]) {
        t.equal(matches(secret), true, `${length} characters`)
        t.equal(matches(Buffer.from(secret)), true, `${length} characters as bytes`)
        t.equal(matches(`${secret.slice(0, -1)}x`), false)
        t.equal(matches(`${secret}k`), false)
        t.equal(matches(`${secret}\0`), false)
        t.equal(matches(Buffer.from(secret.slice(1))), false)
        t.equal(matches(''), false)
        t.equal(matches(Buffer.alloc(100_000, secret)), false)
      }
    }
  }
  t.end()
})

t.test('no secret equals nothing', async t => {
  t.equal(createSecretCheck('')(''), false)
  t.equal(createSecretCheck(Buffer.alloc(0))(''), false)
})
