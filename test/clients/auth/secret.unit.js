import t from 'tap'
import { createSecretCheck } from '../../../src/clients/auth/secret.js'

t.test('only identical secrets are equal', async t => {
  const matches = createSecretCheck('apikey')
  t.equal(matches(Buffer.from('apikey')), true)
  for (const given of ['', 'apike', 'apike€', 'apikeé', 'apikey ', 'Apikey', 'apikey\0', 'apikeyapikey']) {
    t.equal(matches(given), false, JSON.stringify(given))
    t.equal(matches('apikey'), true, 'also after a wrong one')
  }
  const wide = createSecretCheck('schlüssel€')
  t.equal(wide('schlüssel€'), true)
  for (const given of ['schlüsselé', 'schlüssel€'.normalize('NFD')]) t.equal(wide(given), false)
})

t.test('compares secrets of any length, as text and as bytes', async t => {
  for (const length of [1, 42, 43, 127, 128, 129, 1000]) {
    for (const secret of ['k'.repeat(length), '€'.repeat(length)]) {
      for (const matches of [createSecretCheck(secret), createSecretCheck(Buffer.from(secret))]) {
        t.equal(matches(secret), true, `${length} characters`)
        t.equal(matches(Buffer.from(secret)), true, `${length} characters as bytes`)
        const bytes = [Buffer.from(secret.slice(1)), Buffer.alloc(100_000, secret)]
        for (const given of [`${secret.slice(0, -1)}x`, `${secret}k`, `${secret}\0`, '', ...bytes])
          t.equal(matches(given), false)
      }
    }
  }
})

t.test('an empty secret equals no secret', async t => {
  for (const secret of ['', Buffer.alloc(0)]) t.equal(createSecretCheck(secret)(''), false)
})
