// The table of panels, from the top of the screen to the bottom.

import { screenOf } from '../../dashboard/view/screen.js'
import { accounting } from './panels/accounting.js'
import { charts } from './panels/charts.js'
import { detail } from './panels/detail.js'
import { drones } from './panels/drones.js'
import { eventLine, eventList, faultLine, faultList } from './panels/events.js'
import { footer, withDialog } from './panels/footer.js'
import { header } from './panels/header.js'
import { help } from './panels/help.js'
import { statistics } from './panels/statistics.js'
import { status, waiting } from './panels/status.js'
import { isStale } from './picture.js'

export const { render, page, layout } = screenOf({
  panels: [
    header,
    status,
    accounting,
    waiting,
    statistics,
    drones,
    charts,
    detail,
    help,
    eventList,
    faultList,
    faultLine,
    eventLine,
    footer,
  ],
  textPanels: [header, accounting, statistics, drones, faultLine, eventLine],
  undimmed: [status, waiting, help, footer],
  isStale,
  withDialog,
})
