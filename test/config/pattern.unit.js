import t from 'tap'
import { compilePattern } from '../../src/config/pattern.js'

t.test('patterns have the syntax of RE2', async t => {
  /** @type {[string, string[], string[]][]} */
  const table = [
    ['abc', ['abc', 'xabcx'], ['ABC', 'ab']],
    ['^[a-z]+$', ['abc'], ['abc1', '', 'abc\n']],
    ['(?i)^abc$', ['ABC', 'aBc'], ['abcd']],
    ['^(?i)abc$', ['ABC'], ['xabc']],
    ['(?s)^a.b$', ['a\nb'], ['ab']],
    ['(?im)^abc$', ['x\nABC\ny'], ['xabc']],
    ['\\Aabc\\z', ['abc'], ['abcd', 'xabc', 'abc\n']],
    ['^\\w+-\\d{2,3}$', ['a_1-22', 'b-333'], ['b-4444', 'é-22']],
    ['^[\\w-.]+$', ['a-b.c'], ['a b']],
    ['^[]a]+$', ['a]'], ['b']],
    ['^[^]a]+$', ['bc'], ['b]']],
    ['^[a\\]b-]+$', ['a]b-'], ['c']],
    ['^[[:alpha:]_]+[[:digit:]]$', ['ab_1'], ['1', 'ab_']],
    ['^[[:punct:]]+$', ['!/:@[`{~-]^\\'], ['a']],
    ['^\\Qa.b*\\E$', ['a.b*'], ['axb']],
    ['^a{,2}$', ['a{,2}'], ['aa']],
    ['^a{x}]$', ['a{x}]'], []],
    ['^a\\-b\\_c\\@d$', ['a-b_c@d'], []],
    ['^\\x41\\x{1F600}$', ['A😀'], []],
    ['^.$', ['😀'], ['ab']],
    ['^\\pL+$', ['éa'], ['1']],
    ['^\\p{Greek}+$', ['αβ'], ['ab']],
    ['^\\P{L}$', ['1'], ['a']],
    ['^[\\pL\\d]+$', ['é1'], ['-']],
    ['^\\s$', [' ', '\t'], ['\u00a0', '\v']],
    ['^[\\S]$', ['a', '\u00a0'], [' ']],
    ['^(?:a|b)c??$', ['ac', 'b'], ['c']],
    ['^[/a]/$', ['//'], ['b/']],
    ['^[+--]+$', ['+,-'], ['.']],
    ['^a(?i)b$', ['ab', 'aB'], ['AB']],
    ['^(?i:a)b$', ['Ab'], ['AB']],
    ['^(?m)a$', ['a\nb'], ['b\na']],
    ['^(?U)a*$', ['aaa'], ['b']],
    ['^[[:^alpha:]]$', ['1'], ['a']],
  ]
  for (const [pattern, yes, no] of table) {
    const regex = compilePattern(pattern)
    for (const text of yes) t.ok(regex.test(text), `${pattern} matches ${JSON.stringify(text)}`)
    for (const text of no) t.notOk(regex.test(text), `${pattern} does not match ${JSON.stringify(text)}`)
  }
})

t.test('named groups may have both spellings', async t => {
  t.same({ ...compilePattern('^(?P<tenant>a|b)$').exec('a')?.groups }, { tenant: 'a' })
  t.same({ ...compilePattern('^(?<tenant>a|b)$').exec('b')?.groups }, { tenant: 'b' })
})

t.test('an error names the invalid part of the pattern', async t => {
  const message = 'invalid pattern "^a(?=b)$": invalid or unsupported Perl syntax: "(?="'
  t.throws(() => compilePattern('^a(?=b)$'), { message })
  t.throws(() => compilePattern('a\\'), {
    message: 'invalid pattern "a\\\\": trailing backslash at end of expression',
  })
})

t.test('a compiled pattern is stateless', async t => {
  const regex = compilePattern('a')
  t.ok(regex.test('a') && regex.test('a') && regex.test('a'))
})

t.test('unsupported syntax is an error', async t => {
  const bad = (
    '( a) [a a** *a [z-a] \\ \\1 \\Z \\C (?=a) (?!a) (?<=a) [[:nope:]] [a-\\d] \\p{Nope} ' +
    '(?P<é>b) (?<a>b)(?P<a>c) a{1001} (?P<a>b)(?P<a>c) \\q'
  ).split(' ')
  for (const pattern of bad) {
    t.throws(
      () => compilePattern(pattern),
      { message: `invalid pattern ${JSON.stringify(pattern)}: ` },
      pattern,
    )
  }
})
