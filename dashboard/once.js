import { page } from './screen.js'
import { initialState, reduce } from './state.js'
import { plain } from './terminal/line.js'

/** A picture that is no screen: as wide as lines in a log or a mail may be. */
const PAGE = { columns: 100, rows: 24 }

/**
 * One picture, as text.
 *
 * @param {object} parts
 * @param {import('./source/source.js').Source} parts.source closed at the end
 * @param {boolean} parts.unicode
 * @param {number} parts.patience ms
 * @returns {Promise<string>} rejects when there is none
 */
export function onePicture({ source, unicode, patience }) {
  return new Promise((resolve, reject) => {
    const look = { unicode, colors: false }
    let state = initialState({ look, size: PAGE, source: source.name, now: Date.now() })
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
          .map(line => `${plain(line).trimEnd()}\n`)
          .join(''),
      )
    })
  })
}
