import t from 'tap'
import { rawMember, rawMembers, singleLine } from '../../../src/clients/protocol/raw-json.js'

t.test('a member keeps its original text', async t => {
  const text = '{"channel":"x","data":{"n":12345678901234567890, "f":1.0,"e":1e2,"u":"\\u0041"},"z":1}'
  t.equal(rawMember(text, 'data'), '{"n":12345678901234567890, "f":1.0,"e":1e2,"u":"\\u0041"}')
  t.equal(rawMember(text, 'channel'), '"x"')
  t.equal(rawMember(text, 'z'), '1')
  t.equal(rawMember(text, 'n'), undefined, 'members of inner objects are not members')
})

t.test('strings with quotes, backslashes and brackets end where they end', async t => {
  const text = String.raw`{"a":"\"}","b\\":"\\","c":["]","\\\"",{"d":"{"}],"\"":"x\\\\","e":null}`
  t.same([...rawMembers(text).keys()], Object.keys(JSON.parse(text)))
  t.equal(rawMember(text, 'a'), String.raw`"\"}"`)
  t.equal(rawMember(text, 'b\\'), String.raw`"\\"`)
  t.equal(rawMember(text, 'c'), String.raw`["]","\\\"",{"d":"{"}]`)
  t.equal(rawMember(text, '"'), String.raw`"x\\\\"`)
  t.equal(rawMember(text, 'e'), 'null')
})

t.test('an escaped name is the name it means, and is not its own spelling', async t => {
  const text = String.raw`{"d\u0061ta":1,"\/":2}`
  t.equal(rawMember(text, 'data'), '1')
  t.equal(rawMember(text, '/'), '2')
  t.equal(rawMember(text, String.raw`d\u0061ta`), undefined)
})

t.test('of duplicates the last counts', async t => {
  const text = String.raw`{"a":1,"b":2,"\u0061":3}`
  t.equal(rawMember(text, 'a'), '3')
  t.equal(rawMembers(text).get('a'), '3')
})

t.test('white space around everything is no part of a value', async t => {
  const text = ' \r\n{ \t"a" : [ 1 , 2 ] \n, "b":\ttrue\r}\n '
  t.equal(rawMember(text, 'a'), '[ 1 , 2 ]')
  t.equal(rawMember(text, 'b'), 'true')
  t.same(
    [...rawMembers(text)],
    [
      ['a', '[ 1 , 2 ]'],
      ['b', 'true'],
    ],
  )
})

t.test('what is no object has no members', async t => {
  for (const text of ['[]', '1', '"{\\"a\\":1}"', 'null', '{}', ' { } ', '[{"a":1}]']) {
    t.equal(rawMember(text, 'a'), undefined, text)
    t.equal(rawMembers(text).size, 0, text)
  }
})

t.test('a name like __proto__ is only a name', async t => {
  t.equal(rawMember('{"__proto__":1}', '__proto__'), '1')
  t.equal(rawMembers('{"__proto__":1}').get('__proto__'), '1')
  t.equal(rawMember('{}', 'constructor'), undefined)
})

t.test('deep nesting and long strings need no stack and no time', async t => {
  const deep = `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)},"b":1}`
  t.equal(rawMember(deep, 'b'), '1')
  const quotes = JSON.stringify({ a: '\\"'.repeat(200_000), b: 1 })
  t.equal(rawMember(quotes, 'b'), '1')
})

t.test('singleLine takes out line breaks and nothing else', async t => {
  const raw = '{\r\n "a": "x\\ny",\n "b": [\n1,\n2\n]\n}'
  t.notMatch(singleLine(raw), /[\r\n]/)
  t.same(JSON.parse(singleLine(raw)), JSON.parse(raw))
  t.equal(singleLine('{"a": 1}'), '{"a": 1}')
})

t.test('generated objects: the same members as JSON.parse', async t => {
  let seed = 20260726
  const random = (/** @type {number} */ n) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return Math.floor((seed / 2 ** 32) * n)
  }
  const spaces = ['', '', '', ' ', '\n', '\t', '\r\n ']
  const space = () => spaces[random(spaces.length)]
  const bits = [
    'a',
    'b',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '\\"',
    '\\\\',
    '\\n',
    '\\u0061',
    '\\u005c',
    'é',
    '😀',
    ' ',
    '\\/',
  ]
  const string = () => `"${Array.from({ length: random(6) }, () => bits[random(bits.length)]).join('')}"`
  const scalars = ['0', '-1', '1.0', '1e5', '12345678901234567890', 'true', 'false', 'null']
  /** @type {(depth: number) => string} */
  const value = depth => {
    const kind = random(depth > 3 ? 2 : 4)
    if (kind === 0) return scalars[random(scalars.length)]
    if (kind === 1) return string()
    return kind === 2 ? object(depth + 1) : array(depth + 1)
  }
  /** @type {(open: string, close: string, item: () => string) => string} */
  const list = (open, close, item) =>
    space() +
    open +
    space() +
    Array.from({ length: random(5) }, item).join(`${space()},${space()}`) +
    space() +
    close
  /** @type {(depth: number) => string} */
  const array = depth => list('[', ']', () => value(depth))
  // No name has a backslash. V8 of Node.js 24.21 (not of 20, 22, 24.22 and 26) compares the source of an escaped name with
  // the name that came there before, and takes it for that one:
  //   JSON.parse('{"q\\\\":1}'); JSON.parse('{"q\\u0061":2}') // { 'q\\': 2 } instead of { qa: 2 }
  /** @type {() => string} */
  const name = () => {
    const text = string()
    return JSON.parse(text).includes('\\') ? name() : text
  }
  /** @type {(depth: number) => string} */
  const object = depth => list('{', '}', () => `${name()}${space()}:${space()}${value(depth)}`)

  let members = 0
  for (let round = 0; round < 20_000; round++) {
    const text = object(0) + space()
    const parsed = JSON.parse(text)
    const raw = rawMembers(text)
    const names = Object.keys(parsed)
    members += names.length
    if (raw.size !== names.length) return t.fail(text)
    for (const name of names) {
      const one = rawMember(text, name)
      if (one === undefined || one !== raw.get(name) || one !== one.trim()) return t.fail(text)
      if (JSON.stringify(JSON.parse(one)) !== JSON.stringify(parsed[name])) return t.fail(text)
      if (!text.includes(one)) return t.fail(text)
    }
    const whole = singleLine(text)
    if (/[\r\n]/.test(whole) || JSON.stringify(JSON.parse(whole)) !== JSON.stringify(parsed))
      return t.fail(text)
  }
  t.ok(members > 20_000, `${members} members`)
})
