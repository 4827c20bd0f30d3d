import t from 'tap'
import {
  clip,
  clipText,
  lineWidth,
  pad,
  plain,
  sideBySide,
  tableRow,
  visibleWidth,
  withStyle,
} from '../../../dashboard/terminal/line.js'
import { clean, toAscii, toAsciiText } from '../../../dashboard/terminal/text.js'

t.test('text width is the width on the terminal', async t => {
  for (const [text, columns] of /** @type {[string, number][]} */ ([
    ['', 0],
    ['abc', 3],
    ['é│⣿█', 4],
    ['漢字', 4],
    ['한', 2],
    ['ﾊﾝｶｸ', 4],
    ['🙂', 2],
    ['e\u0301', 1],
    ['\u0301', 0],
    ['👨\u200d👩', 4],
    ['a\ufe0f', 1],
    ['\x1b[31mred\x1b[0m', 3],
    ['a\tb\x07', 4],
  ]))
    t.equal(visibleWidth(text), columns, JSON.stringify(text))
})

t.test('control sequences are removed from untrusted text', async t => {
  t.equal(clean('plain'), 'plain')
  t.equal(clean('\x1b[1;31mred\x1b[0m, \x1b[2J\x1b[10;10H'), 'red, ')
  t.equal(clean('\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\'), 'link')
  t.equal(clean('\x9b31mred\x9d0;title\x9c'), 'red')
  t.equal(clean('a\r\nb\tc\u2028d'), 'a  b c d')
  t.equal(clean('\x1b(0\x1b7\x08\x7f\x85\x90'), '?(0?7?? ?')
  t.equal(clean('\u202eright to left\u2066\u200b\ufeff'), 'right to left')
  t.equal(clean('half \ud83d a pair'), 'half ? a pair')
  let all = ''
  for (let code = 0; code < 0x3000; code++) all += String.fromCharCode(code)
  t.notMatch(clean(all), /[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2028\u2029]/)
})

t.test('lines are never cut within a character', async t => {
  t.equal(clipText('abcdef', 3), 'abc')
  t.equal(clipText('漢字', 3), '漢')
  t.equal(clipText('e\u0301e\u0301', 1), 'e\u0301')
  t.equal(clipText('abc', 0), '')
  const line = /** @type {import('../../../dashboard/terminal/line.js').Line} */ ([
    ['abc', 'good'],
    ['漢字', ''],
    ['z', 'bad'],
  ])
  t.equal(lineWidth(line), 8)
  t.equal(clip(line, 8), line)
  t.strictSame(clip(line, 6), [
    ['abc', 'good'],
    ['漢', ''],
  ])
  t.strictSame(clip(line, 5, '…'), [
    ['abc', 'good'],
    ['…', ''],
  ])
  t.strictSame(clip(line, 2, '…'), [
    ['a', 'good'],
    ['…', 'good'],
  ])
  t.strictSame(clip([['abc', 'good'], ...line], 3, '…'), [
    ['ab', 'good'],
    ['…', 'good'],
  ])
  t.strictSame(clip(line, 0, '…'), [])
})

t.test('a fitting span with an escape sequence does not count as cut', async t => {
  const line = /** @type {import('../../../dashboard/terminal/line.js').Line} */ ([
    ['\x1b[31mab', 'good'],
    ['cdef', ''],
  ])
  t.equal(plain(clip(line, 5, '…')), 'abcd…')
})

t.test('lines are padded to a width', async t => {
  t.strictSame(pad([['ab', 'good']], 4), [
    ['ab', 'good'],
    ['  ', ''],
  ])
  t.strictSame(pad([['ab', 'good']], 4, 'right'), [
    ['  ', ''],
    ['ab', 'good'],
  ])
  t.equal(plain(pad([['漢字', '']], 3)), '漢 ')
})

t.test('tableRow pads cells to columns', async t => {
  const layout = /** @type {const} */ ([
    { width: 4, align: 'left' },
    { width: 5 },
    { width: 3, align: 'left' },
  ])
  const row = tableRow([['ab', 'good'], [['12', 'value'], [' ms', 'dim']], ['too long', '']], layout) // biome-ignore format: a row
  t.equal(plain(row), 'ab   12 ms too')
  t.equal(plain(tableRow([], layout)), ' '.repeat(14))
  t.strictSame(withStyle([['a', ''], ['b', 'bad']], 'selected'), [['a', 'selected'], ['b', 'bad selected']]) // biome-ignore format: two rows
})

t.test('sideBySide joins blocks', async t => {
  const block = (/** @type {string[]} */ ...lines) =>
    lines.map(text => /** @type {import('../../../dashboard/terminal/line.js').Line} */ ([[text, '']]))
  t.strictSame(sideBySide([block('a', 'b'), block('c')], [2, 3]).map(plain), ['a  c  ', 'b     '])
})

t.test('ASCII replacements have the same width', async t => {
  for (const [character, ascii] of ['│|', '─-', '….', 'ée', 'µu', '●*', '½1', '⣿?']) t.equal(toAscii(character), ascii) // biome-ignore format: pairs
  t.equal(toAscii('漢'), '??')
  t.equal(toAscii('🙂'), '??')
  t.equal(toAscii('e\u0301'), 'e')
  t.equal(toAscii('Ａ'), 'A ')
  t.equal(toAsciiText('e\u0301Ａ'), 'eA ')
})
