/**
 * @typedef {0 | 16 | 256} Colors blessed supports at most 256
 *
 * @typedef {object} Capabilities of a terminal
 * @property {boolean} unicode box drawing, blocks and braille
 * @property {Colors} colors
 * @property {boolean} screen a terminal with cursor addressing; one unknown to terminfo is used like xterm
 */

const MONOCHROME = /^(?:dumb|vt\d+|xterm-mono|xtermm|.*-m|unknown)$/
/** SSH does not forward COLORTERM. */
const SHADES = /256color|256$|-direct|-truecolor|kitty|alacritty|^foot|ghostty|wezterm|contour/

/**
 * @param {object} about @param {Record<string, string | undefined>} about.env @param {boolean} about.isTTY
 * @param {{ascii?: boolean, noColor?: boolean}} [about.flags] `--ascii`, `--no-color`: override the environment
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
  // The Linux console accepts UTF-8, but its font has no braille and few blocks.
  if (env.TERM === 'linux') return false
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || ''
  if (locale === '') return env.WT_SESSION !== undefined
  return /utf-?8/i.test(locale)
}

/** @param {Record<string, string | undefined>} env @param {boolean} isTTY @returns {Colors} */
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

/** @param {Record<string, string | undefined>} env @returns {Colors} */
function fromTerminal(env) {
  const term = env.TERM ?? ''
  const full = /^(?:truecolor|24bit)$/i.test(env.COLORTERM ?? '')
  if (term === '') return env.WT_SESSION === undefined && !full ? 0 : 256
  if (MONOCHROME.test(term)) return 0
  // GNU screen inherits COLORTERM of the outer terminal but shows such colours wrong; tmux under the same name is
  // right.
  const inScreen = term.startsWith('screen') && env.TMUX === undefined
  if ((full && !inScreen) || SHADES.test(term)) return 256
  return 16
}
