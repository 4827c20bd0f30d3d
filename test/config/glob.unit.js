import t from 'tap'
import { compileGlob } from '../../src/config/glob.js'

const matches = (pattern, name) => compileGlob(pattern).test(name)

t.test('an asterisk matches any text, including namespace boundaries', async t => {
  t.ok(matches('*', ''))
  t.ok(matches('*', 'news:a:b'))
  t.ok(matches('news:*', 'news:'))
  t.ok(matches('*:b', 'news:a:b'))
  t.ok(matches('a*b*c', 'a-b-b-c'))
  t.ok(matches('a**c', 'abc'))
  t.ok(matches('a*', 'a\nb'))
  t.notOk(matches('a*b*c', 'a-c-b'))
  t.notOk(matches('news', 'news2'), 'a pattern is for the whole name')
  t.notOk(matches('*a*b', 'ba'))
})

t.test('a question mark matches one character', async t => {
  t.ok(matches('?', 'é'))
  t.ok(matches('?', '😀'))
  t.notOk(matches('?', ''))
  t.notOk(matches('?', 'ab'))
})

t.test('brackets match a set of characters', async t => {
  t.ok(matches('[ab]', 'b'))
  t.ok(matches('[a-c0-9]x', '7x'))
  t.ok(matches('[!a-c]', 'd'))
  t.ok(matches('[^a-c]', 'd'))
  t.ok(matches('[a-]', '-'))
  t.ok(matches('[-a]', '-'))
  t.ok(matches('[*]', '*'))
  t.ok(matches('[\\]]', ']'))
  t.notOk(matches('[!a-c]', 'b'))
  t.notOk(matches('[*]', 'a'))
})

t.test('braces match alternatives', async t => {
  t.ok(matches('{news,chat}:*', 'chat:1'))
  t.ok(matches('{,a}b', 'b'))
  t.ok(matches('{a,b{c,d*}}e', 'bd99e'))
  t.ok(matches('*{abcd,c}*d', 'abcd'), 'the shorter one, where only that leaves room for the rest')
  t.ok(matches('a,b', 'a,b'))
  t.ok(matches('a}', 'a}'))
  t.notOk(matches('{news,chat}:*', 'news'))
})

t.test('all other characters are literal', async t => {
  for (const name of ['a.b', '$x', 'a+b', '(x)', 'a|b', '^', 'a-b', 'a/b', ']', '#1,2']) {
    t.ok(matches(name, name), name)
    t.notOk(matches(name, `${name}!`), name)
  }
  t.notOk(matches('a.b', 'axb'))
  t.ok(matches('\\*\\?\\[\\{\\\\', '*?[{\\'))
})

t.test('malformed and oversized patterns are null', async t => {
  for (const pattern of [
    '[',
    '[]',
    '[a',
    '[!',
    '{a',
    '{a,{b}',
    'a\\',
    '[z-a]',
    '[\\',
    '{'.repeat(1000),
    'x'.repeat(5000),
  ]) {
    t.equal(compileGlob(pattern), undefined, pattern.slice(0, 20))
  }
  t.equal(compileGlob('{a,b}'.repeat(30)), undefined, 'alternatives multiply')
  t.equal(compileGlob('*{a,aa}'.repeat(8)), undefined, 'so do stars, each of which may look through the name')
  t.equal(compileGlob(`{${'*a,'.repeat(300)}}`), undefined)
})

t.test('matching takes little time for any pattern', async t => {
  const name = 'a'.repeat(255)
  const started = process.cpuUsage().user
  t.notOk(matches(`${'*a'.repeat(60)}*b`, name))
  t.notOk(matches(`${'*{a,aa}'.repeat(4)}*b`, name))
  t.ok(process.cpuUsage().user - started < 1e6, 'less than a second of CPU')
})
