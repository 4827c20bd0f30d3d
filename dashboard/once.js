import { page } from './screen.js'
import { initialState, reduce } from './state.js'
import { plain } from './terminal/line.js'
import { toAsciiText } from './terminal/text.js'

/** A picture that is no screen. */
const ROWS = 24

/**
 * One picture, as text.
 *
 * @param {object} parts
 * @param {import('./source/source.js').Source} parts.source closed at the end
 * @param {number} parts.columns
 * @param {boolean} parts.unicode
 * @param {number} parts.patience ms
 * @returns {Promise<string>} rejects when there is none
 */
export function onePicture({ source, columns, unicode, patience }) {
  return new Promise((resolve, reject) => {
    const look = { unicode, colors: false }
    const text = unicode
      ? plain
      : (/** @type {import('./terminal/line.js').Line} */ line) => toAsciiText(plain(line))
    let state = initialState({ look, size: { columns, rows: ROWS }, source: source.name, now: Date.now() })
    const end = () => {
      clearTimeout(timer)
      source.close()
    }
    const timer = setTimeout(() => {
      end()
      reject(new Error(`${source.name}: nothing has come`))
    }, patience)
    source.start(event => {
      const now = Date.now()
      if (event.type === 'link') {
        state = reduce(state, { type: 'link', state: event.state, text: event.text, now })
        if (event.state !== 'refused' && event.state !== 'lost') return
        end()
        return reject(new Error(`${source.name}: ${event.text}`))
      }
      state = reduce(state, { type: 'message', message: event.message, now })
      if (event.message.type !== 'snapshot') return
      end()
      resolve(
        page(state)
          .map(line => `${text(line).trimEnd()}\n`)
          .join(''),
      )
    })
  })
}
