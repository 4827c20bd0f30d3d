import { PassThrough } from 'node:stream'
import blessed from 'blessed'
import t from 'tap'
import { KeyInput, keyName } from '../../../dashboard/terminal/key-input.js'

/** A program of blessed that reads chunks of bytes. @param {import('tap').Test} t */
function reader(t) {
  const input = new KeyInput()
  const { program: createProgram } = /** @type {any} */ (blessed)
  const program = createProgram({ input, output: new PassThrough(), terminal: 'xterm' })
  t.teardown(() => program.destroy())
  /** @type {string[]} */
  const keys = []
  /** @type {() => void} */
  let onName = () => {}
  program.on('keypress', (/** @type {string} */ character, /** @type {any} */ key) => {
    const name = keyName(character, key)
    if (name === '') return
    keys.push(name)
    onName()
  })
  return {
    /** @param {...(string | Buffer)} chunks */
    read: (...chunks) => {
      for (const chunk of chunks) input.write(Buffer.from(chunk))
      return keys.splice(0)
    },
    /** @returns {Promise<string[]>} once one comes */
    next: () =>
      new Promise(resolve => {
        onName = () => resolve(keys.splice(0))
      }),
  }
}

t.test("keys have blessed's names", async t => {
  const { read } = reader(t)
  for (const [text, ...keys] of [
    ['q', 'q'],
    ['G?', 'G', '?'],
    ['5+-', '5', '+', '-'],
    [' ', 'space'],
    ['\r\n', 'enter', 'enter'],
    ['\t\x1b[Z', 'tab', 'S-tab'],
    ['\x7f\b', 'backspace', 'backspace'],
    ['\x01\x03\x1a', 'C-a', 'C-c', 'C-z'],
    ['\x1b[A\x1b[B\x1b[C\x1b[D', 'up', 'down', 'right', 'left'],
    ['\x1bOA\x1bOB', 'up', 'down'],
    ['\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[7~\x1b[8~', 'home', 'end', 'home', 'end', 'home', 'end'],
    ['\x1b[5~\x1b[6~\x1b[2~\x1b[3~', 'pageup', 'pagedown', 'insert', 'delete'],
    ['\x1bOP\x1b[[A\x1b[11~\x1b[15~\x1b[24~', 'f1', 'f1', 'f1', 'f5', 'f12'],
    ['\x1b[1;2A\x1b[1;5C', 'S-up', 'C-right'],
    ['\x1bx', 'M-x'],
    ['é漢', 'é', '漢'],
  ])
    t.strictSame(read(text), keys, JSON.stringify(text))
})

t.test('terminal reports are not keys', async t => {
  const { read } = reader(t)
  t.strictSame(read('\x1b[?1;2c\x1b[24;80Ra\x1b[200~'), ['a'], 'answers and reports of the terminal')
})

t.test('an escape sequence can arrive in pieces', async t => {
  const { read } = reader(t)
  for (const [text, key] of [
    ['\x1b[A', 'up'],
    ['\x1b[15~', 'f5'],
    ['\x1b[1;5C', 'C-right'],
    ['\x1bOP', 'f1'],
    ['\x1b[[A', 'f1'],
    ['é', 'é'],
  ]) {
    const bytes = Buffer.from(text)
    for (let cut = 1; cut < bytes.length; cut++)
      t.strictSame(
        read(bytes.subarray(0, cut), bytes.subarray(cut)),
        [key],
        `${JSON.stringify(text)} after ${cut}`,
      )
  }
})

t.test('a lone escape is a key', async t => {
  const { read, next } = reader(t)
  const pressed = next()
  t.strictSame(read('\x1b'), [])
  t.strictSame(await pressed, ['escape'])
  t.strictSame(read('\x1b[1;'), [], 'half a sequence')
})
