import t from 'tap'
import { createSecretCheck } from '../../src/auth/secret.js'

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

t.test('no secret equals nothing', async t => {
  t.equal(createSecretCheck('')(''), false)
  t.equal(createSecretCheck(Buffer.alloc(0))(''), false)
})
