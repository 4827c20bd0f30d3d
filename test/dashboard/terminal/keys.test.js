import t from 'tap'
import { KeyDecoder } from '../../../dashboard/terminal/keys.js'

/** @param {string} text */
const decode = text => new KeyDecoder().decode(Buffer.from(text))

t.test('keys have names', async t => {
  for (const [text, ...keys] of [
    ['q', 'q'],
    ['G?', 'G', '?'],
    [' ', 'space'],
    ['\r\n', 'enter', 'enter'],
    ['\t\x1b[Z', 'tab', 'backtab'],
    ['\x7f\b', 'backspace', 'backspace'],
    ['\0', 'ctrl-space'],
    ['\x01\x03\x1a', 'ctrl-a', 'ctrl-c', 'ctrl-z'],
    ['\x1c', 'ctrl-\\'],
    ['\x1b[A\x1b[B\x1b[C\x1b[D', 'up', 'down', 'right', 'left'],
    ['\x1bOA\x1bOB', 'up', 'down'],
    ['\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[7~\x1b[8~', 'home', 'end', 'home', 'end', 'home', 'end'],
    ['\x1b[5~\x1b[6~\x1b[2~\x1b[3~', 'page-up', 'page-down', 'insert', 'delete'],
    ['\x1bOP\x1b[[A\x1b[11~\x1b[15~\x1b[24~', 'f1', 'f1', 'f1', 'f5', 'f12'],
    ['\x1b[1;2A\x1b[1;5C\x1b[1;3D\x1b[1;6B', 'shift-up', 'ctrl-right', 'alt-left', 'ctrl-shift-down'],
    ['\x1b[5;5~', 'ctrl-page-up'],
    ['\x1bx\x1b\r', 'alt-x', 'alt-enter'],
    ['é漢🙂', 'é', '漢', '🙂'],
  ])
    t.strictSame(decode(text), keys, JSON.stringify(text))
})

t.test('what is no key is none', async t => {
  t.strictSame(decode('\x1b[?1;2c\x1b[24;80Ra\x1b[200~'), ['a'], 'answers and reports of the terminal')
  t.strictSame(decode('\x1b[\x07b'), ['ctrl-g', 'b'], 'a sequence that is none')
})

t.test('a sequence may come in pieces', async t => {
  for (const text of ['\x1b[A', '\x1b[15~', '\x1b[1;5C', '\x1bOP', '\x1b[[A', 'é', '🙂']) {
    const bytes = Buffer.from(text)
    for (let cut = 1; cut < bytes.length; cut++) {
      const decoder = new KeyDecoder()
      const keys = [...decoder.decode(bytes.subarray(0, cut)), ...decoder.decode(bytes.subarray(cut))]
      t.strictSame(keys, decode(text), `${JSON.stringify(text)} after ${cut}`)
      t.equal(decoder.pending, false)
    }
  }
})

t.test('an escape is a key when nothing follows it', async t => {
  const decoder = new KeyDecoder()
  t.strictSame(decoder.decode(Buffer.from('\x1b')), [])
  t.equal(decoder.pending, true)
  t.strictSame(decoder.flush(), ['escape'])
  t.equal(decoder.pending, false)
  t.strictSame(decoder.flush(), [])
  t.strictSame(decoder.decode(Buffer.from('\x1b\x1b[A')), ['escape', 'up'])
  decoder.decode(Buffer.from('\x1b['))
  t.strictSame(decoder.flush(), ['alt-['])
  decoder.decode(Buffer.from('\x1b[1;'))
  t.strictSame(decoder.flush(), [], 'half a sequence')
  t.strictSame(decoder.decode(Buffer.from('x')), ['x'])
})
