import t from 'tap'
import { STYLES, Theme } from '../../../dashboard/terminal/theme.js'

/** @param {number[]} rgb @returns {number} relative luminance (WCAG 2) */
function luminance(rgb) {
  const [red, green, blue] = rgb.map(value => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** @param {number} shade 16 to 255 of the palette of xterm @returns {number[]} */
function rgbOf(shade) {
  if (shade >= 232) return Array(3).fill(8 + (shade - 232) * 10)
  const steps = [0, 95, 135, 175, 215, 255]
  const at = shade - 16
  return [steps[Math.floor(at / 36)], steps[Math.floor(at / 6) % 6], steps[at % 6]]
}

t.test('every colour is readable on black and on white', async t => {
  for (const [style, { shade }] of Object.entries(STYLES)) {
    if (shade === undefined) continue
    const light = luminance(rgbOf(shade))
    const contrast = Math.min(1.05 / (light + 0.05), (light + 0.05) / 0.05)
    t.ok(contrast >= 3, `${style} ${shade}: ${contrast.toFixed(1)}`)
  }
})

/**
 * @param {number} attributes of a cell of blessed
 * @returns {{flags: number, foreground: number, background: number}} flags: 1 bold, 8 reverse; 511: the terminal's
 *   own colour
 */
const parts = attributes => ({
  flags: attributes >> 18,
  foreground: (attributes >> 9) & 0x1ff,
  background: attributes & 0x1ff,
})

t.test('a style maps to every colour depth', async t => {
  const of = (/** @type {any} */ colors, style = 'bad') => parts(new Theme(colors).attributes(style))
  t.same(of(16), { flags: 1, foreground: 1, background: 511 })
  t.same(of(256), { flags: 1, foreground: 160, background: 511 })
  t.same(of(0), { flags: 9, foreground: 511, background: 511 })
  t.same(of(256, ''), { flags: 0, foreground: 511, background: 511 })
  t.same(of(256, 'unknown style'), of(256, ''))
  t.same(of(256, 'bad selected'), { flags: 9, foreground: 160, background: 511 }, 'several of them')
})

t.test('selection and health differ without colours', async t => {
  const theme = new Theme(0)
  const seen = new Set(['', 'warn', 'bad', 'selected'].map(style => theme.attributes(style)))
  t.equal(seen.size, 4)
  for (const style of Object.keys(STYLES)) t.equal(parts(theme.attributes(style)).foreground, 511, style)
})

t.test('no style sets a background or is invisible in a palette of 16', async t => {
  for (const style of Object.keys(STYLES)) {
    for (const colors of /** @type {const} */ ([16, 256]))
      t.equal(parts(new Theme(colors).attributes(style)).background, 511, `${style} ${colors}`)
    t.notOk([0, 7].includes(parts(new Theme(16).attributes(style)).foreground), style)
  }
})
