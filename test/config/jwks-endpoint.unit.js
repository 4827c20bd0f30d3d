// `createEndpoint` fills the placeholders of a JWKS URL, `{{tenant}}`, from named groups of the token's issuer and
// audience.

import t from 'tap'
import { createEndpoint } from '../../src/config/jwks-endpoint.js'

const TENANT_URL = 'https://{{tenant}}.example.com/jwks'

/** @param {string} pattern @param {boolean} [insecure] @param {string} [url] */
const endpoint = (pattern, insecure = false, url = TENANT_URL) =>
  createEndpoint(url, { issuer_regex: pattern, insecure_skip_jwks_endpoint_safety_check: insecure })

t.test('a URL without placeholders is used unchanged', async t => {
  t.equal(createEndpoint('http://127.0.0.1:1/jwks', {})({}), 'http://127.0.0.1:1/jwks')
})

t.test('placeholders are filled from named groups', async t => {
  t.equal(endpoint('^https://(?P<tenant>one|two)$')({ tenant: 'two' }), 'https://two.example.com/jwks')
  t.equal(
    endpoint('(?<tenant>one)', false, 'https://a/{{ tenant }}/{{tenant}}')({ tenant: 'one' }),
    'https://a/one/one',
  )
  const both = createEndpoint('https://{{a}}/{{b}}', { issuer_regex: '(?P<a>x)', audience_regex: '(?P<b>y)' })
  t.equal(both({ a: 'x', b: 'y' }), 'https://x/y')
  t.equal(both({ a: 'x' }), undefined, 'a group without a match')
  t.equal(both({ a: 'x', b: '' }), undefined)
})

t.test('a placeholder needs a group that matches only a list of literals', async t => {
  for (const body of ['one', 'one|two', 'a-b_c|d\\.e', 'realms/a|realms/b', 'a\\+b']) {
    t.doesNotThrow(() => endpoint(`^x(?P<tenant>${body})$`), body)
  }
  const unsafe = (
    '[a-z]+ .* . a.b \\w+ \\d \\S a* a+ a? a{2} (a|b) (?:a) ^a a$ a| |a a||b \\pL [a] a|[b] ' + 'a|\\w'
  ).split(' ')
  for (const body of unsafe) {
    const message = /^\{\{tenant\}\} is a group that matches more than a list of literals/
    t.throws(() => endpoint(`^x(?P<tenant>${body})$`), { message }, body)
    t.doesNotThrow(() => endpoint(`^x(?P<tenant>${body})$`, true), body)
  }
  t.doesNotThrow(
    () => endpoint('^[a-z]+(?P<tenant>a|b)\\((?P<other>.*)$'),
    'groups without a placeholder may match anything',
  )
})

t.test('without the safety check a value is still percent-encoded', async t => {
  const unchecked = endpoint('(?P<tenant>.*)', true, 'https://host/{{tenant}}/jwks')
  t.equal(unchecked({ tenant: 'a b&c' }), 'https://host/a%20b%26c/jwks')
  t.equal(unchecked({ tenant: 'a.b..c' }), 'https://host/a.b..c/jwks')
  t.equal(unchecked({ tenant: 'M%C3%BCller' }), 'https://host/M%25C3%25BCller/jwks')
})

t.test('a value that could leave its part of the URL is refused without the safety check', async t => {
  const unchecked = endpoint('(?P<tenant>.*)', true, 'https://host/{{tenant}}/jwks')
  const once = (/** @type {string} */ text) =>
    text.replace(/./gu, char => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
  for (const text of ['.', '..', '/', '\\', '?', '#', '@', ':', 'a/b', '..\\a', '\0', '\r\n']) {
    const encoded = once(text)
    for (const tenant of [text, encoded, encoded.toUpperCase(), once(encoded), once(once(encoded))])
      t.equal(unchecked({ tenant }), undefined, JSON.stringify(tenant))
  }
  for (const tenant of [
    '',
    '.%2e',
    '%252e.',
    '%2e%2E',
    '%c0%ae%c0%ae',
    '%',
    '50%',
    '%zz',
    '\ud800',
    'a\x85b',
  ])
    t.equal(unchecked({ tenant }), undefined, JSON.stringify(tenant))
  t.equal(unchecked({ tenant: `%${'25'.repeat(50_000)}41` }), undefined, 'without decoding it 50,000 times')
})

t.test('a listed value may contain a path', async t => {
  const listed = endpoint('(?P<tenant>realms/a|realms/b)', false, 'https://host/{{tenant}}/jwks')
  t.equal(listed({ tenant: 'realms/b' }), 'https://host/realms/b/jwks')
})

t.test('an invalid URL or placeholder is refused', async t => {
  t.throws(() => endpoint('(?P<other>a)'), {
    message: /is not a named group of issuer_regex or audience_regex/,
  })
  t.throws(() => createEndpoint(TENANT_URL, {}), { message: /is not a named group/ })
  for (const url of ['nonsense', '', 'file:///etc/passwd', 'ftp://a/b', 'http://']) {
    t.throws(() => createEndpoint(url, {}), { message: `${JSON.stringify(url)} is not an http or https URL` })
  }
})
