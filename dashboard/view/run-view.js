/** @import { Line } from '../terminal/line.js' */
/** @import { Terminal } from '../terminal/terminal.js' */
/** @import { ViewAction } from './state.js' */

/** @typedef {Pick<Terminal, 'size' | 'onKey' | 'onResize' | 'onEnd' | 'open' | 'close' | 'draw'>} Screen */

/**
 * @template State, Action, Effect
 * @typedef {object} View what differs between the dashboard and `halley fleet status`
 * @property {Screen} terminal closed on every exit
 * @property {State & {effects: Effect[]}} state
 * @property {(state: State & {effects: Effect[]}, action: Action | ViewAction) => State &
 *   {effects: Effect[]}} reduce
 * @property {(state: State & {effects: Effect[]}) => Line[]} render
 * @property {(dispatch: (action: Action) => void) => void} start starts the source
 * @property {(effect: Effect, parts: {dispatch: (action: Action) => void, finish: (result?: any) => void}) => void}
 *   onEffect
 * @property {() => void} close stops the source
 * @property {() => boolean} [orphaned] whether the parent process has exited: ends the view
 */

/** Minimum time between two frames, ms. */
const FRAME_INTERVAL = 250
/** Tick interval, ms. A tick updates the displayed ages, and checks whether the parent has exited. */
const TICK_INTERVAL = 1000
const SIGNALS = /** @type {const} */ (['SIGTERM', 'SIGHUP', 'SIGINT'])

/**
 * Runs a view until the user quits: passes keys, ticks and events of the source to `reduce`, and draws the new state.
 * @template State, Action, Effect
 * @param {View<State, Action, Effect>} view
 * @returns {Promise<any>} argument of `finish`, or undefined after a signal; rejects if the view throws
 */
export function runView({
  terminal,
  state: initial,
  reduce,
  render,
  start,
  onEffect,
  close,
  orphaned = () => false,
}) {
  const host = process

  return new Promise((resolve, reject) => {
    let state = initial
    /** State on the screen. @type {typeof state | null} */
    let drawn = null
    let drawnAt = Number.NEGATIVE_INFINITY
    /** @type {NodeJS.Timeout | null} */
    let drawTimer = null
    let ended = false

    const end = () => {
      ended = true
      if (drawTimer) clearTimeout(drawTimer)
      clearInterval(ticker)
      host.off('uncaughtException', fail)
      for (const signal of SIGNALS) host.off(signal, quit)
      close()
      terminal.close()
    }
    const finish = (/** @type {any} */ result) => {
      if (ended) return
      end()
      resolve(result)
    }
    const fail = (/** @type {Error} */ error) => {
      if (ended) return
      end()
      reject(error)
    }
    const quit = () => finish(undefined)

    const draw = () => {
      drawTimer = null
      drawnAt = performance.now()
      drawn = state
      terminal.draw(render(state))
    }
    /** Draws at most every FRAME_INTERVAL ms, and only a changed state. */
    const drawSoon = () => {
      if (state === drawn || drawTimer || ended) return
      drawTimer = setTimeout(safely(draw), Math.max(0, drawnAt + FRAME_INTERVAL - performance.now()))
    }
    const dispatch = safely((/** @type {Action | ViewAction} */ action) => {
      state = reduce(state, action)
      for (const effect of state.effects) onEffect(effect, { dispatch, finish })
      drawSoon()
    })
    /**
     * Wraps a callback: an error ends the view instead of reaching the caller, which may swallow it.
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
    const ticker = setInterval(() => {
      if (orphaned()) quit()
      else dispatch({ type: 'tick', now: Date.now() })
    }, TICK_INTERVAL)
    terminal.onKey = name => dispatch({ type: 'key', name, now: Date.now() })
    terminal.onEnd = quit
    // A resize garbles the screen: redraw now.
    terminal.onResize = safely(({ columns, rows }) => {
      state = reduce(state, { type: 'size', columns, rows })
      if (drawTimer) clearTimeout(drawTimer)
      draw()
    })
    safely(() => {
      terminal.open()
      draw()
      start(dispatch)
    })()
  })
}
