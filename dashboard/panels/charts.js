import { CHARTS } from '../charts.js'
import { shown } from '../picture.js'
import { chartBlock, joined, widthOfEach } from './plot.js'

/** @typedef {import('./panel.js').Line} Line */

/** What a chart needs, its title included. */
const LEAST = { width: 48, height: 8 }
/** A chart that is higher says no more. */
const HIGHEST = 24

/**
 * The last minutes. On a small terminal there is one chart at a time.
 * @type {import('./panel.js').Panel}
 */
export const charts = {
  name: 'charts',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: ({ size }) => ({
    least: size.rows < 20 ? 5 : 6,
    most: HIGHEST * Math.ceil(CHARTS.length / across(size.columns)),
  }),
  turn: 6,

  draw(state, width, rows) {
    const wide = across(width)
    // One more row of charts only where every chart keeps a height to be read.
    const high = Math.max(1, Math.min(Math.ceil(CHARTS.length / wide), Math.floor(rows / LEAST.height)))
    const count = Math.min(CHARTS.length, wide * high)
    const first = count === CHARTS.length ? 0 : state.chart
    /** @type {Line[]} */
    const lines = []
    for (let row = 0; row < high; row++) {
      const height = Math.floor((rows * (row + 1)) / high) - Math.floor((rows * row) / high)
      const inRow = Math.min(wide, count - row * wide)
      if (inRow <= 0) break
      const blocks = Array.from({ length: inRow }, (_, column) => {
        const which = (first + row * wide + column) % CHARTS.length
        const more = count === 1 ? `${which + 1}/${CHARTS.length}` : ''
        const plot = { definition: CHARTS[which], id: `${which}`, pick: itself }
        return chartBlock(
          plot,
          { look: state.look, picture: shown(state) },
          widthOfEach(width, wide),
          height,
          more,
        )
      })
      lines.push(...joined(blocks))
    }
    return lines
  },
}

/** @param {number} width */
const across = width => Math.min(3, Math.max(1, Math.floor(width / LEAST.width)))

/** @param {import('../points.js').Moment} moment */
const itself = moment => moment
