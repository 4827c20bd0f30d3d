/** @typedef {0 | 16 | 256} Colors blessed supports at most 256 */
/** @typedef {{unicode: boolean, colors: Colors, screen: boolean}} Capabilities screen: has cursor addressing */

const MONOCHROME = /^(?:dumb|vt\d+|xterm-mono|xtermm|.*-m|unknown)$/
/** SSH does not forward COLORTERM. */
const SHADES = /256color|256$|-direct|-truecolor|kitty|alacritty|^foot|ghostty|wezterm|contour/

/**
 * @param {object} about @param {Record<string, string | undefined>} about.env @param {boolean} about.isTTY
 * @param {{ascii?: boolean, noColor?: boolean}} [about.flags] `--ascii`, `--no-color`: override the environment
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
  // GNU screen inherits COLORTERM but renders such colours wrongly; tmux with TERM=screen renders them correctly.
  const inScreen = term.startsWith('screen') && env.TMUX === undefined
  if ((full && !inScreen) || SHADES.test(term)) return 256
  return 16
}
