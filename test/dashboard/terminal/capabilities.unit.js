import t from 'tap'
import { detectCapabilities } from '../../../dashboard/terminal/capabilities.js'

/** @param {Record<string, string>} env */
const unicode = (env, flags = {}) => detectCapabilities({ env, isTTY: true, flags }).unicode
/** @param {Record<string, string>} env */
const colors = (env, flags = {}, isTTY = true) => detectCapabilities({ env, isTTY, flags }).colors

t.test('detects box drawing and braille from a UTF-8 locale', async t => {
  t.equal(unicode({ LANG: 'en_US.UTF-8' }), true)
  t.equal(unicode({ LANG: 'de_DE.utf8' }), true)
  t.equal(unicode({ LC_CTYPE: 'C.UTF-8', LANG: 'C' }), true, 'LC_CTYPE before LANG')
  t.equal(unicode({ LC_ALL: 'C', LC_CTYPE: 'C.UTF-8', LANG: 'C.UTF-8' }), false, 'LC_ALL before both')
  t.equal(unicode({ LC_ALL: '', LANG: 'C.UTF-8' }), true, 'an empty value is ignored')
  t.equal(unicode({ LANG: 'de_DE.ISO-8859-1' }), false)
  t.equal(unicode({}), false)
  t.equal(unicode({ WT_SESSION: '1' }), true, 'Windows Terminal')
  t.equal(unicode({ LANG: 'C.UTF-8', TERM: 'linux' }), false, 'the Linux console has no such characters')
  t.equal(unicode({ LANG: 'C.UTF-8' }, { ascii: true }), false, '--ascii')
})

t.test('detects the colours of the terminal', async t => {
  t.equal(colors({ TERM: 'xterm' }), 16)
  t.equal(colors({ TERM: 'linux' }), 16)
  t.equal(colors({ TERM: 'xterm-256color' }), 256)
  t.equal(colors({ TERM: 'tmux-256color', COLORTERM: 'truecolor', TMUX: '/tmp/x' }), 256)
  t.equal(colors({ TERM: 'xterm-256color', COLORTERM: '24bit' }), 256)
  t.equal(colors({ TERM: 'xterm-direct' }), 256)
  t.equal(colors({ TERM: 'xterm-kitty' }), 256, 'through SSH')
  t.equal(colors({ TERM: 'screen-256color', COLORTERM: 'truecolor' }), 256, 'GNU screen in such a terminal')
  for (const TERM of ['dumb', 'vt100', 'vt220', 'xterm-mono']) t.equal(colors({ TERM }), 0, TERM)
  t.equal(colors({}), 0)
  t.equal(colors({ TERM: 'xterm' }, {}, false), 0, 'no terminal')
})

t.test('environment variables and flags override the colours', async t => {
  const TERM = 'xterm-256color'
  t.equal(colors({ TERM, NO_COLOR: '1' }), 0)
  t.equal(colors({ TERM, NO_COLOR: '' }), 256, 'an empty value is ignored')
  t.equal(colors({ TERM, FORCE_COLOR: '0' }), 0)
  t.equal(colors({ TERM: 'dumb', FORCE_COLOR: '1' }), 16)
  t.equal(colors({ TERM, FORCE_COLOR: '1' }, {}, false), 256, 'no terminal')
  t.equal(colors({ TERM, FORCE_COLOR: '' }, {}, false), 256)
  t.equal(colors({ TERM: 'xterm', FORCE_COLOR: '2' }), 256)
  t.equal(colors({ TERM: 'xterm', FORCE_COLOR: '3', NO_COLOR: '1' }), 256, 'FORCE_COLOR before NO_COLOR')
  t.equal(colors({ TERM, FORCE_COLOR: '3' }, { noColor: true }), 0, '--no-color')
})

t.test('a screen is a terminal with cursor addressing', async t => {
  t.equal(detectCapabilities({ env: { TERM: 'xterm' }, isTTY: true }).screen, true)
  t.equal(detectCapabilities({ env: { TERM: 'dumb' }, isTTY: true }).screen, false)
  t.equal(detectCapabilities({ env: { TERM: 'xterm' }, isTTY: false }).screen, false)
})
