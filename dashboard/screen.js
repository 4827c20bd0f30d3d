// The table of panels, from top to bottom.

import { charts } from './panels/charts.js'
import { detail } from './panels/detail.js'
import { csv, footer, withDialog } from './panels/footer.js'
import { header, status, waiting } from './panels/header.js'
import { help } from './panels/help.js'
import { eventLine, eventList, log } from './panels/log.js'
import { queues } from './panels/queues.js'
import { workers } from './panels/workers.js'
import { isStale } from './picture.js'
import { screenOf } from './view/screen.js'

export const { render, page, layout } = screenOf({
  panels: [
    header,
    status,
    waiting,
    workers,
    queues,
    charts,
    detail,
    help,
    eventList,
    log,
    eventLine,
    csv,
    footer,
  ],
  textPanels: [header, workers, queues, eventLine, csv],
  undimmed: [status, waiting, help, footer],
  isStale,
  withDialog,
})
