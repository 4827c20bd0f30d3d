import { charts } from './panels/charts.js'
import { detail } from './panels/detail.js'
import { withDialog } from './panels/dialog.js'
import { eventLine, eventList } from './panels/events.js'
import { csv, footer } from './panels/footer.js'
import { header } from './panels/header.js'
import { help } from './panels/help.js'
import { log } from './panels/log.js'
import { status, waiting } from './panels/status.js'
import { workers } from './panels/workers.js'
import { isStale } from './picture.js'
import { screenOf } from './view/screen.js'

export const { render, page, layout } = screenOf({
  panels: [header, status, waiting, workers, charts, detail, help, eventList, log, eventLine, csv, footer],
  inWords: [header, workers, eventLine, csv],
  bright: [status, waiting, help, footer],
  isStale,
  withDialog,
})
