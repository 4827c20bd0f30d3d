import t from 'tap'
import { Screen } from '../../../dashboard/terminal/screen.js'
import { Theme } from '../../../dashboard/terminal/theme.js'

/** @typedef {import('../../../dashboard/terminal/line.js').Line} Line */

/**
 * @param {Line[]} lines that are on it
 * @param {boolean} [unicode]
 */
function screen(lines, unicode = true) {
  const screen = new Screen(new Theme(16), unicode)
  screen.resize(20, 3)
  screen.show(lines)
  return screen
}

/**
 * @param {string} text
 * @returns {Line}
 */
const line = text => [[text, '']]

t.test('the first frame paints every row', async t => {
  const screen = new Screen(new Theme(16), true)
  screen.resize(20, 3)
  t.equal(
    screen.show([line('one'), [['two', 'good']]]),
    '\x1b[1H\x1b[0mone\x1b[1;4H\x1b[K\x1b[2H\x1b[0;32mtwo\x1b[2;4H\x1b[0m\x1b[K\x1b[3H\x1b[K',
  )
})

t.test('nothing is written when nothing has changed', async t => {
  const shown = screen([line('one')])
  t.equal(shown.show([line('one')]), '')
  t.equal(shown.show([[['o', ''], ['ne', '']]]), '', 'in other spans') // biome-ignore format: spans
  t.equal(shown.show([line('one'), line('   ')]), '', 'blanks')
})

t.test('only what differs within a row is written', async t => {
  t.equal(screen([line('load 10 of 100')]).show([line('load 11 of 100')]), '\x1b[1;7H\x1b[0m1')
  t.equal(
    screen([line('1 2 3 .......... 4')]).show([line('0 2 0 .......... 0')]),
    '\x1b[1H\x1b[0m0 2 0\x1b[1;18H0',
    'what is near is written through',
  )
  t.equal(screen([line('abc')]).show([[['abc', 'bad']]]), '\x1b[1H\x1b[0;1;31mabc', 'a style')
})

t.test('the end of a row is erased, not filled', async t => {
  t.equal(screen([line('a long line')]).show([line('a')]), '\x1b[1;2H\x1b[0m\x1b[K')
  t.equal(screen([line('one'), line('two')]).show([line('one')]), '\x1b[2H\x1b[0m\x1b[K')
  t.equal(
    screen([line('ab')]).show([[['ab   ', 'selected']]]),
    '\x1b[1H\x1b[0;7mab   ',
    'but not where blanks can be seen',
  )
})

t.test('a wide character is written as a whole', async t => {
  t.equal(screen([line('a漢b')]).show([line('a字b')]), '\x1b[1;2H\x1b[0m字')
  t.equal(screen([line('a漢b')]).show([line('axyb')]), '\x1b[1;2H\x1b[0mxy')
  t.equal(screen([line('axyb')]).show([line('a漢b')]), '\x1b[1;2H\x1b[0m漢')
  t.equal(screen([line('漢漢')]).show([line('漢漢.')]), '\x1b[1;5H\x1b[0m.')
  t.equal(
    screen([line('')]).show([line('1234567890123456789漢')]),
    '\x1b[1H\x1b[0m1234567890123456789',
    'half of one is nothing',
  )
})

t.test('after a character whose width is not sure the next one is put where it belongs', async t => {
  t.equal(screen([line('')]).show([line('漢ab⚠c')]), '\x1b[1H\x1b[0m漢\x1b[3Gab⚠\x1b[6Gc')
})

t.test('what does not fit is not written', async t => {
  const shown = screen([])
  t.equal(shown.show([line('12345678901234567890123')]), '\x1b[1H\x1b[0m12345678901234567890')
  t.equal(shown.show([line('12345678901234567890'), [], [], line('a fourth row')]), '')
})

t.test('everything is painted again when nobody knows what is there, or the size is another', async t => {
  const shown = screen([line('one')])
  shown.forget()
  const again = shown.show([line('one')])
  t.match(again, 'one')
  t.match(again, '\x1b[3H\x1b[K')
  shown.resize(20, 3)
  t.equal(shown.show([line('one')]), '')
  shown.resize(10, 2)
  t.equal(shown.show([line('one')]), '\x1b[1H\x1b[0mone\x1b[1;4H\x1b[K\x1b[2H\x1b[K')
})

t.test('without Unicode there is only ASCII', async t => {
  const screen = new Screen(new Theme(0), false)
  screen.resize(20, 1)
  t.equal(screen.show([line('│漢é\x1b[0m…')]), '\x1b[1H\x1b[0m|??e.\x1b[1;6H\x1b[K')
})
