// Text that must not act on a terminal.

import t from 'tap'
import { escapeControls } from '../../src/base/terminal-text.js'

t.test('control characters are escaped as in JSON', async t => {
  const codes = [
    ...Array.from({ length: 0x20 }, (_, code) => code),
    ...Array.from({ length: 0x21 }, (_, at) => 0x7f + at),
    ...[0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e],
    ...[0x2066, 0x2067, 0x2068, 0x2069],
  ]
  for (const code of codes) {
    const escaped = `\\u${code.toString(16).padStart(4, '0')}`
    const kept = code === 9 || code === 10
    const char = String.fromCharCode(code)
    t.equal(escapeControls(`a${char}b`), `a${kept ? char : escaped}b`, escaped)
    t.equal(escapeControls(`a${char}b`, ''), `a${escaped}b`)
  }
})

t.test('other text is unchanged', async t => {
  const text = 'für €\u00a0漢字 שלום مرحبا 👨‍👩‍👧 می‌خواهم \ud800 \\u001b'
  t.equal(escapeControls(text), text)
})
