import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'
import {
  asBytes,
  closeReason,
  cutText,
  headBytes,
  headersInBytes,
  topicBytes,
} from '../../../src/clients/server/text.js'

const folder = new URL('../../../src/', import.meta.url)
/** Files that call uWebSockets.js. */
const CALLERS = /^clients\/server\/(?:uws[\w-]*|tls)\.js$/
/** Files that only load or mention it. */
const OTHERS = [
  'clients/server/index.js',
  'clients/server/load-uws.js',
  'clients/server/node.js',
  'clients/server/text.js',
  'metrics/doctor/examine.js',
]

const response = {
  writeStatus: [0],
  writeHeader: [0, 1],
  write: [0],
  end: [0],
  tryEnd: [0],
  upgrade: [1, 2, 3],
}
const topics = { subscribe: [0], unsubscribe: [0], isSubscribed: [0], publish: [0, 1] }
/** Text arguments of its methods, by the name of the variable. @type {Record<string, Record<string, number[]>>} */
const TEXTS = {
  res: response,
  stream: response,
  target: response,
  req: { getHeader: [0], getQuery: [0], getParameter: [0] },
  ws: { send: [0], end: [1], ping: [0], ...topics },
  app: { ws: [0], any: [0], native: [0], listen: [0], publish: [0, 1], numSubscribers: [0], domain: [0] },
}
/** From the functions of text.js, a constant, or a variable of bytes. */
const BYTES =
  /^(?:(?:as|key|name|topic|value)Bytes\(.*\)|head\[.*\]|[A-Z_]+|deflate \? DEFLATE : NOTHING|key)$/s

/** @param {string} text of a file @returns {{call: string, argument: string}[]} that it passes to uWebSockets.js */
function textArguments(text) {
  const source = ts.createSourceFile('file.js', text, ts.ScriptTarget.Latest, true)
  const found = []
  const visit = node => {
    if (ts.isCallExpression(node)) found.push(...argumentsOf(node))
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** @param {ts.CallExpression} node */
function argumentsOf({ expression, arguments: given }) {
  const isAccess = ts.isPropertyAccessExpression(expression) || ts.isElementAccessExpression(expression)
  if (!isAccess) return []
  const receiver = /#?(\w+)$/.exec(expression.expression.getText())?.[1] ?? ''
  const method = ts.isPropertyAccessExpression(expression)
    ? expression.name.text
    : expression.argumentExpression.getText()
  // `listen` also takes a port alone.
  const places = method === 'listen' && given.length < 3 ? [] : (TEXTS[receiver]?.[method] ?? [])
  return places
    .filter(place => place < given.length)
    .map(place => ({ call: `${receiver}.${method}`, argument: given[place].getText() }))
}

t.test('uWebSockets.js gets bytes, never strings', async t => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.js'))
    .map(name => ({ name, text: readFileSync(fileURLToPath(new URL(name, folder)), 'utf8') }))
  const importers = files.filter(({ text }) => /'uWebSockets\.js'/.test(text)).map(({ name }) => name)
  t.same(
    importers.filter(name => !CALLERS.test(name) && !OTHERS.includes(name)),
    [],
    'no other file calls it',
  )
  const passed = files.filter(({ name }) => CALLERS.test(name)).flatMap(({ text }) => textArguments(text))
  t.ok(passed.length > 20, `${passed.length} places`)
  t.same(
    passed.filter(({ argument }) => !BYTES.test(argument)),
    [],
  )
  for (const call of [
    "res.end('ü')",
    'this.#res.write(text)',
    'ws.send(a)',
    'this.#app[native](path, () => {})',
  ])
    t.notOk(BYTES.test(textArguments(call)[0].argument), `refuses ${call}`)
})

t.test('text is encoded as UTF-8', async t => {
  const short = ['', 'x', 'é', 'abc€', '\ud83d']
  const texts = [...short, '漢'.repeat(20), 'x'.repeat(1000), 'é'.repeat(4096), 'ü'.repeat(9000)]
  for (const encode of [asBytes, topicBytes])
    for (const text of [...texts, ...texts.toReversed()])
      t.ok(Buffer.from(text).equals(encode(text)), text.slice(0, 5))
  const bytes = new Uint8Array(3)
  t.equal(asBytes(bytes), bytes)
  const topic = topicBytes('topic')
  asBytes('other')
  t.equal(Buffer.from(topic).toString(), 'topic')
})

t.test('text is cut between characters', async t => {
  for (const [text, bytes, start] of /** @type {[string, number, string][]} */ ([
    ['abc', 3, 'abc'],
    ['abcd', 3, 'abc'],
    ['é€😀', 9, 'é€😀'],
    ['é€😀', 8, 'é€'],
    ['é€😀', 4, 'é'],
    ['é€😀', 1, ''],
  ]))
    t.equal(cutText(text, bytes), start)
  t.equal(Buffer.byteLength(closeReason('é'.repeat(100))), 122)
})

t.test('response headers are valid bytes', async t => {
  const text = head => head.map(part => part.toString())
  t.same(text(headBytes(404, { 'X-A': 'é' })), ['404 Not Found', 'X-A', 'é'])
  t.same(text(headBytes(299, null)), ['299 Unknown'])
  t.same(headersInBytes({ 'X-A': 'é', 'X-B': 'b' }), { 'X-A': 'Ã©', 'X-B': 'b' })
  for (const encode of [headers => headBytes(200, headers), headersInBytes]) {
    t.throws(() => encode({ 'X-A': 'b\r\nX-C: d' }), {
      message: 'invalid header value: "b\\r\\nX-C: d"',
    })
    t.throws(() => encode({ 'X A': 'b' }), { message: 'invalid header name: "X A"' })
  }
  // More values than the cache keeps.
  for (let i = 0; i < 2000; i++) headBytes(200, { 'X-A': `value ${i}` })
  t.same(text(headBytes(200, { 'X-A': 'value 7' })), ['200 OK', 'X-A', 'value 7'])
})
