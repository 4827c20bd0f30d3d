import { CHARTS } from '../chart-definitions.js'
import { SPAN } from '../picture.js'
import { chartBlock, chartsOf } from '../view/charts.js'
import { shown } from '../view/state.js'

/** @import { Panel, Picture } from '../state.js' */

/** The last minutes. @type {Panel} */
export const charts = chartsOf({
  count: CHARTS.length,
  across: 3,
  highest: 24,
  rows: rows => ({ least: rows < 20 ? 5 : 6 }),
  draw: (state, which, width, height, more) =>
    chartBlock(
      { definition: CHARTS[which], id: `${which}`, pick: moment => moment },
      historyOf(shown(state)),
      state.look,
      width,
      height,
      more,
    ),
})

/** @param {Picture} picture @returns {import('../view/charts.js').History<import('../picture.js').Point>} */
export const historyOf = ({ history, charted }) => ({
  ...charted,
  newest: history.at(-1) ?? null,
  span: SPAN,
})
