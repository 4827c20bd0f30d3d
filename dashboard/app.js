import { render } from './screen.js'
import { initialState, reduce } from './state.js'

/**
 * @typedef {import('./state.js').State} State
 * @typedef {import('./state.js').Action} Action
 * @typedef {import('./state.js').Reason} Reason
 *
 * @typedef {object} Screen a Terminal, as far as it is used here
 * @property {{columns: number, rows: number}} size
 * @property {(name: string) => void} onKey
 * @property {(size: {columns: number, rows: number}) => void} onResize
 * @property {() => void} onEnd
 * @property {() => void} open
 * @property {() => void} close
 * @property {(lines: import('./terminal/line.js').Line[]) => void} draw
 */

/** ms between two pictures, at least. */
const PICTURE = 250
/** ms between two looks at whether the picture has become old. */
const TICK = 1000
const SIGNALS = /** @type {const} */ (['SIGTERM', 'SIGHUP', 'SIGINT'])

/**
 * Shows a gateway until somebody quits.
 *
 * @param {object} parts
 * @param {import('./source/source.js').Source} parts.source closed at the end
 * @param {Screen} parts.terminal opened, and closed whatever happens
 * @param {{unicode: boolean, colors: boolean}} parts.look what the terminal can show
 * @param {boolean} [parts.owner] whether the gateway belongs to this terminal: quitting asks what is to become of it
 * @param {string} [parts.key] that the gateway has generated, for the help; '' if none
 * @param {() => boolean} [parts.orphaned] whether whoever has started this is gone: then it ends, too
 * @param {() => number} [parts.now] unix ms
 * @param {Pick<NodeJS.Process, 'on' | 'off'>} [parts.host] the process
 * @returns {Promise<{reason: Reason, text: string}>} `text`: why it was refused; rejects, with the terminal closed, when something in here
 *   goes wrong
 */
export function runDashboard({
  source,
  terminal,
  look,
  owner = false,
  key = '',
  orphaned = () => false,
  now = Date.now,
  host = process,
}) {
  return new Promise((resolve, reject) => {
    let state = initialState({ look, size: terminal.size, source: source.name, now: now(), owner, key })
    /** @type {State | null} what is on the screen */
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
      source.close()
      terminal.close()
    }
    const finish = (/** @type {Reason} */ reason, text = '') => {
      if (ended) return
      end()
      resolve({ reason, text })
    }
    const fail = (/** @type {Error} */ error) => {
      if (ended) return
      end()
      reject(error)
    }
    const quit = () => finish('quit')

    const draw = () => {
      waiting = null
      drawnAt = performance.now()
      drawn = state
      terminal.draw(render(state))
    }
    /** Pictures come at most so often, and only when there is something new. */
    const drawSoon = () => {
      if (state === drawn || waiting || ended) return
      waiting = setTimeout(safely(draw), Math.max(0, drawnAt + PICTURE - performance.now()))
    }
    const dispatch = safely((/** @type {Action} */ action) => {
      state = reduce(state, action)
      for (const effect of state.effects) {
        if (effect.type === 'send') source.send(effect.command)
        else finish(effect.reason, effect.text)
      }
      drawSoon()
    })
    /**
     * Callers are not to swallow what goes wrong in here.
     * @template {unknown[]} A
     * @param {(...args: A) => void} run
     * @returns {(...args: A) => void}
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
    // A terminal of another size shows nothing of use until it is drawn anew.
    terminal.onResize = safely(({ columns, rows }) => {
      state = reduce(state, { type: 'size', columns, rows })
      if (waiting) clearTimeout(waiting)
      draw()
    })
    safely(() => {
      terminal.open()
      draw()
      source.start(event =>
        dispatch(
          event.type === 'link'
            ? { type: 'link', state: event.state, text: event.text, now: now() }
            : { type: 'message', message: event.message, now: now() },
        ),
      )
    })()
  })
}
