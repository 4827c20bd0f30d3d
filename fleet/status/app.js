import { render } from './screen.js'
import { initialState, reduce } from './state.js'

/**
 * @typedef {import('./state.js').State} State
 * @typedef {import('./state.js').Action} Action
 * @typedef {import('../../dashboard/terminal/terminal.js').Terminal} Terminal
 */

/** ms between two pictures, at least. */
const PICTURE = 200
/** ms between two looks at whether the picture has become old. */
const TICK = 1000
const SIGNALS = /** @type {const} */ (['SIGTERM', 'SIGHUP', 'SIGINT'])

/**
 * Shows a fleet until somebody leaves.
 *
 * @param {object} parts
 * @param {import('./source.js').Source} parts.source closed at the end
 * @param {Pick<Terminal, 'size' | 'onKey' | 'onResize' | 'onEnd' | 'open' | 'close' | 'draw'>} parts.terminal opened, and closed
 *   whatever happens
 * @param {import('./state.js').Look} parts.look
 * @param {() => number} [parts.now] Unix ms
 * @param {Pick<NodeJS.Process, 'on' | 'off'>} [parts.host] the process
 * @returns {Promise<void>} rejects, with the terminal closed, when something in here goes wrong
 */
export function runView({ source, terminal, look, now = Date.now, host = process }) {
  return new Promise((resolve, reject) => {
    let state = initialState({
      look,
      size: terminal.size,
      now: now(),
      source: source.name,
      commands: source.command !== undefined,
    })
    /** @type {State | null} what is on the screen */
    let drawn = null
    let drawnAt = Number.NEGATIVE_INFINITY
    /** @type {NodeJS.Timeout | null} */
    let waiting = null
    let ended = false

    const end = (/** @type {Error | null} */ error) => {
      if (ended) return
      ended = true
      if (waiting) clearTimeout(waiting)
      clearInterval(ticking)
      host.off('uncaughtException', end)
      for (const signal of SIGNALS) host.off(signal, leave)
      terminal.close()
      source.close()
      if (error === null) resolve()
      else reject(error)
    }
    const leave = () => end(null)

    /**
     * Callers are not to swallow what goes wrong in here.
     * @template {unknown[]} A
     * @param {(...args: A) => void} run
     * @returns {(...args: A) => void}
     */
    const safely =
      run =>
      (...args) => {
        if (ended) return
        try {
          run(...args)
        } catch (error) {
          end(/** @type {Error} */ (error))
        }
      }
    const draw = safely(() => {
      waiting = null
      drawnAt = performance.now()
      drawn = state
      terminal.draw(render(state))
    })
    /** Pictures come at most so often, and only when there is something new. */
    const drawSoon = () => {
      if (state === drawn || waiting || ended) return
      waiting = setTimeout(draw, Math.max(0, drawnAt + PICTURE - performance.now()))
    }
    const dispatch = safely((/** @type {Action} */ action) => {
      state = reduce(state, action)
      for (const effect of state.effects) {
        if (effect.type === 'finish') return end(null)
        const { name, params, what } = effect
        const answer = (/** @type {string | null} */ error) =>
          dispatch({ type: 'answer', what, error, now: now() })
        source.command?.(name, params).then(
          () => answer(null),
          error => answer(error.message),
        )
      }
      drawSoon()
    })

    host.on('uncaughtException', end)
    for (const signal of SIGNALS) host.on(signal, leave)
    const ticking = setInterval(() => dispatch({ type: 'tick', now: now() }), TICK)
    terminal.onKey = name => dispatch({ type: 'key', name, now: now() })
    terminal.onEnd = leave
    // A terminal of another size shows nothing of use until it is drawn anew.
    terminal.onResize = ({ columns, rows }) => {
      state = reduce(state, { type: 'size', columns, rows })
      if (waiting) clearTimeout(waiting)
      draw()
    }
    safely(() => {
      terminal.open()
      draw()
      source.onLost?.(reason => dispatch({ type: 'lost', reason, now: now() }))
      source.onSnapshot(snapshot => dispatch({ type: 'snapshot', snapshot, now: now() }))
    })()
  })
}
