import t from 'tap'
import { Canvas } from '../../../dashboard/terminal/canvas.js'
import { Theme } from '../../../dashboard/terminal/theme.js'

/**
 * @typedef {import('../../../dashboard/terminal/canvas.js').Row} Row
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 */

/** @returns {Row[]} blank ones, as blessed makes them */
const blank = (columns = 10, rows = 3) =>
  Array.from({ length: rows }, () =>
    Object.assign(
      Array.from({ length: columns }, () => /** @type {[number, string]} */ ([0x3ffff, ' '])),
      { dirty: false },
    ),
  )

/** @param {Row} row */
const textOf = row => row.map(([, text]) => text).join('')

/** @param {string} text @returns {Line} */
const line = text => [[text, '']]

t.test('only changed rows are redrawn', async t => {
  const canvas = new Canvas(new Theme(16), true)
  const cells = blank()
  const dirty = () => cells.map(row => row.dirty)
  const paint = (/** @type {Line[]} */ ...lines) => {
    for (const row of cells) row.dirty = false
    canvas.paint(cells, lines)
  }
  paint(line('one'), [['two', 'bad']])
  t.same(cells.map(textOf), ['one       ', 'two       ', '          '])
  t.same(dirty(), [true, true, false])
  t.equal(cells[1][0][0], new Theme(16).attributes('bad'))
  t.equal(cells[1][3][0], new Theme(16).attributes(''))
  paint(line('one'), [['two', 'bad']])
  t.same(dirty(), [false, false, false])
  paint(line('one'), [['two', 'good']], line('three'))
  t.same(dirty(), [false, true, true])
  paint(line('on'))
  t.same(cells.map(textOf), ['on        ', '          ', '          '])
  const others = blank()
  canvas.paint(others, [line('on')])
  t.equal(others[0].dirty, true, 'another screen, or another size')
})

t.test('text that does not fit is cut, never through a wide character', async t => {
  const paint = (/** @type {string} */ text) => {
    const cells = blank(6, 1)
    new Canvas(new Theme(16), true).paint(cells, [line(text), line('a second row')])
    return textOf(cells[0])
  }
  t.equal(paint('12345678'), '123456')
  t.equal(paint('12345漢'), '12345 ')
  t.equal(paint('1234漢'), '1234漢')
})

t.test('the cursor is placed again after a character of uncertain width', async t => {
  const cells = blank(6, 1)
  new Canvas(new Theme(16), true).paint(cells, [line('漢ab⚠c')])
  t.same(
    cells[0].map(([, text]) => text),
    ['漢', '', '\x1b[3Ga', 'b', '⚠', '\x1b[6Gc'],
  )
})

t.test('escape sequences and control characters are removed', async t => {
  const cells = blank(20, 1)
  new Canvas(new Theme(16), true).paint(cells, [line('a\x1b[2Jb\x9b5Ac\r\n\x1b]0;title\x07d\x1be\u202e')])
  t.equal(textOf(cells[0]).trimEnd(), 'abc  d?e')
})

t.test('without Unicode only ASCII is drawn', async t => {
  const cells = blank(10, 1)
  new Canvas(new Theme(0), false).paint(cells, [line('│漢é\x1b[0m…')])
  t.equal(textOf(cells[0]).trimEnd(), '|??e.')
})
