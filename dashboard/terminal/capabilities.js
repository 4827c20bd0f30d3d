/**
 * @typedef {0 | 16 | 256} Colors blessed has no more than 256
 *
 * @typedef {object} Capabilities what can be shown on a terminal
 * @property {boolean} unicode box drawing, blocks and braille dots; else only ASCII
 * @property {Colors} colors
 * @property {boolean} screen the cursor can be moved: there is a terminal, and it is no dumb one
 */

/** Those that know no colours. */
const MONOCHROME = /^(?:dumb|vt\d+|xterm-mono|xtermm|.*-m|unknown)$/
/** Those with more than 16; some do not say so (COLORTERM is lost on the way through SSH). */
const SHADES = /256color|256$|-direct|-truecolor|kitty|alacritty|^foot|ghostty|wezterm|contour/

/**
 * @param {object} about
 * @param {Record<string, string | undefined>} about.env of the process
 * @param {boolean} about.isTTY whether the output is a terminal
 * @param {{ascii?: boolean, noColor?: boolean}} [about.flags] `--ascii`, `--no-color`: they have the last word
 * @returns {Capabilities}
 */
export function detectCapabilities({ env, isTTY, flags = {} }) {
  return {
    unicode: !flags.ascii && hasUnicode(env),
    colors: flags.noColor ? 0 : colorsOf(env, isTTY),
    screen: isTTY && env.TERM !== 'dumb',
  }
}

/** @param {Record<string, string | undefined>} env */
function hasUnicode(env) {
  // The console of Linux takes UTF-8, but has neither braille nor most blocks in its font.
  if (env.TERM === 'linux') return false
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || ''
  if (locale === '') return env.WT_SESSION !== undefined
  return /utf-?8/i.test(locale)
}

/**
 * @param {Record<string, string | undefined>} env
 * @param {boolean} isTTY
 * @returns {Colors}
 */
function colorsOf(env, isTTY) {
  const { FORCE_COLOR: force, NO_COLOR: no } = env
  if (force !== undefined) {
    if (force === '0' || force === 'false') return 0
    if (force === '2' || force === '3') return 256
    return fromTerminal(env) || 16
  }
  if (!isTTY || (no !== undefined && no !== '')) return 0
  return fromTerminal(env)
}

/**
 * @param {Record<string, string | undefined>} env
 * @returns {Colors}
 */
function fromTerminal(env) {
  const term = env.TERM ?? ''
  const full = /^(?:truecolor|24bit)$/i.test(env.COLORTERM ?? '')
  if (term === '') return env.WT_SESSION === undefined && !full ? 0 : 256
  if (MONOCHROME.test(term)) return 0
  // GNU screen passes COLORTERM of the terminal outside on, and shows such colours wrong; tmux, under the same name, does not.
  const inScreen = term.startsWith('screen') && env.TMUX === undefined
  if ((full && !inScreen) || SHADES.test(term)) return 256
  return 16
}
