/** @import { Line } from '../terminal/line.js' */
/** @import { ViewAction } from './state.js' */

/**
 * @typedef {object} Screen the part of Terminal used here
 * @property {{columns: number, rows: number}} size
 * @property {(name: string) => void} onKey
 * @property {(size: {columns: number, rows: number}) => void} onResize
 * @property {() => void} onEnd
 * @property {() => void} open
 * @property {() => void} close
 * @property {(lines: Line[]) => void} draw
 */

/**
 * @template State, Action, Effect
 * @typedef {object} View
 * @property {Screen} terminal closed on every exit
 * @property {State & {effects: Effect[]}} state
 * @property {(state: State & {effects: Effect[]}, action: Action | ViewAction) => State &
 *   {effects: Effect[]}} reduce
 * @property {(state: State & {effects: Effect[]}) => Line[]} render
 * @property {(dispatch: (action: Action) => void) => void} start starts the source
 * @property {(effect: Effect, parts: {dispatch: (action: Action) => void, finish: (ending?: any) => void}) => void}
 *   onEffect
 * @property {() => void} close stops the source
 * @property {() => boolean} [orphaned] whether the parent process is gone: the view ends
 * @property {() => number} [now] Unix ms
 * @property {Pick<NodeJS.Process, 'on' | 'off'>} [host]
 */

/** Minimum time between two pictures, ms. */
const PICTURE = 250
/** Interval of the check for a stale picture, ms. */
const TICK = 1000
const SIGNALS = /** @type {const} */ (['SIGTERM', 'SIGHUP', 'SIGINT'])

/**
 * Runs a view until the user quits: the loop of the dashboard and of `halley fleet status`.
 * @template State, Action, Effect
 * @param {View<State, Action, Effect>} view
 * @returns {Promise<any>} the argument of `finish`; undefined after a signal or the loss of the terminal
 * @throws {Error} a fault of the view; the terminal is closed before
 */
export function runView({
  terminal,
  state: first,
  reduce,
  render,
  start,
  onEffect,
  close,
  orphaned = () => false,
  now = Date.now,
  host = process,
}) {
  return new Promise((resolve, reject) => {
    let state = first
    /** @type {typeof state | null} what is on the screen */
    let drawn = null
    let drawnAt = Number.NEGATIVE_INFINITY
    /** @type {NodeJS.Timeout | null} */
    let waiting = null
    let ended = false

    const end = () => {
      ended = true
      if (waiting) clearTimeout(waiting)
      clearInterval(ticking)
      host.off('uncaughtException', fail)
      for (const signal of SIGNALS) host.off(signal, quit)
      close()
      terminal.close()
    }
    const finish = (/** @type {any} */ ending) => {
      if (ended) return
      end()
      resolve(ending)
    }
    const fail = (/** @type {Error} */ error) => {
      if (ended) return
      end()
      reject(error)
    }
    const quit = () => finish(undefined)

    const draw = () => {
      waiting = null
      drawnAt = performance.now()
      drawn = state
      terminal.draw(render(state))
    }
    /** Draws at most every PICTURE ms, and only a changed state. */
    const drawSoon = () => {
      if (state === drawn || waiting || ended) return
      waiting = setTimeout(safely(draw), Math.max(0, drawnAt + PICTURE - performance.now()))
    }
    const dispatch = safely((/** @type {Action | ViewAction} */ action) => {
      state = reduce(state, action)
      for (const effect of state.effects) onEffect(effect, { dispatch, finish })
      drawSoon()
    })
    /**
     * Faults end the view; callers must not swallow them.
     * @template {unknown[]} A
     * @param {(...args: A) => void} run @returns {(...args: A) => void}
     */
    function safely(run) {
      return (...args) => {
        if (ended) return
        try {
          run(...args)
        } catch (error) {
          fail(error)
        }
      }
    }

    host.on('uncaughtException', fail)
    for (const signal of SIGNALS) host.on(signal, quit)
    const ticking = setInterval(() => {
      if (orphaned()) quit()
      else dispatch({ type: 'tick', now: now() })
    }, TICK)
    terminal.onKey = name => dispatch({ type: 'key', name, now: now() })
    terminal.onEnd = quit
    // A resize garbles the screen: draw at once.
    terminal.onResize = safely(({ columns, rows }) => {
      state = reduce(state, { type: 'size', columns, rows })
      if (waiting) clearTimeout(waiting)
      draw()
    })
    safely(() => {
      terminal.open()
      draw()
      start(dispatch)
    })()
  })
}
