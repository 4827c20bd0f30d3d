import t from 'tap'
import { STYLES, Theme } from '../../../dashboard/terminal/theme.js'

/**
 * @param {number[]} rgb
 * @returns {number} relative luminance (WCAG 2)
 */
function luminance(rgb) {
  const [red, green, blue] = rgb.map(value => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/**
 * @param {number} shade 16 to 255 of the palette of xterm
 * @returns {number[]}
 */
function rgbOf(shade) {
  if (shade >= 232) return Array(3).fill(8 + (shade - 232) * 10)
  const steps = [0, 95, 135, 175, 215, 255]
  const at = shade - 16
  return [steps[Math.floor(at / 36)], steps[Math.floor(at / 6) % 6], steps[at % 6]]
}

t.test('every colour can be read on black and on white', async t => {
  for (const [style, { shade, rgb }] of Object.entries(STYLES)) {
    const colors = []
    if (shade !== undefined) colors.push(rgbOf(shade))
    if (rgb !== undefined) colors.push([...Buffer.from(rgb, 'hex')])
    for (const color of colors) {
      const light = luminance(color)
      const contrast = Math.min(1.05 / (light + 0.05), (light + 0.05) / 0.05)
      t.ok(contrast >= 3, `${style} ${color}: ${contrast.toFixed(1)}`)
    }
  }
})

t.test('a style in every depth of colour', async t => {
  const of = (/** @type {any} */ colors, style = 'bad') => new Theme(colors).sequence(style)
  t.equal(of(16), '\x1b[0;1;31m')
  t.equal(of(256), '\x1b[0;1;38;5;160m')
  t.equal(of('truecolor'), '\x1b[0;1;38;2;217;48;37m')
  t.equal(of(0), '\x1b[0;1;7m')
  t.equal(of(256, ''), '\x1b[0m')
  t.equal(of(256, 'nobody knows it'), '\x1b[0m')
  t.equal(of(256, 'bad selected'), '\x1b[0;1;38;5;160;7m', 'several of them')
})

t.test('what is selected, and what is not well, can be told apart without colours', async t => {
  const theme = new Theme(0)
  const seen = new Set(['', 'warn', 'bad', 'selected'].map(style => theme.sequence(style)))
  t.equal(seen.size, 4)
  for (const style of Object.keys(STYLES)) t.notMatch(theme.sequence(style), /[34]\d/, style)
})

t.test('no style has a background of its own, and none is invisible in a palette of 16', async t => {
  for (const style of Object.keys(STYLES)) {
    for (const colors of /** @type {const} */ ([16, 256, 'truecolor']))
      t.notMatch(
        new Theme(colors).sequence(style),
        /(?<!38[\d;]*)[;[](?:4[0-9]|10[0-9])[;m]/,
        `${style} ${colors}`,
      )
    t.notMatch(new Theme(16).sequence(style), /[;[](?:30|37|9\d)[;m]/, style)
  }
})
