import { bytes, quantity, share, whole } from '../../src/base/format.js'
import { footerOf, withQuestion } from '../view/panels.js'
import { named } from '../view/parts.js'
import { shown } from '../view/state.js'

/** @import { Panel, Snapshot, State } from '../state.js' */
/** @import { Line } from '../terminal/line.js' */

/** The CSV file, when there is one. @type {Panel} */
export const csv = {
  name: 'csv',
  visible: state => Boolean(shown(state).snapshot?.csv) && state.view === 'main',
  rows: () => ({ least: 1, most: 1 }),
  priority: 4,

  draw(state) {
    const { csv } = /** @type {Snapshot} */ (shown(state).snapshot)
    if (!csv) return []
    const { file, bytes: written, max_bytes: most, rotations, error } = csv
    if (error !== null)
      return [
        [
          [' csv  ', 'header'],
          [file, 'value'],
          [`  ${error}`, 'bad'],
        ],
      ]
    const full = most > 0 ? [[` of ${bytes(most)} (${share(written / most)})`, 'label']] : []
    return [
      [
        [' csv  ', 'header'],
        [file, 'value'],
        [`  ${bytes(written)}`, 'value'],
        .../** @type {Line} */ (full),
        ['  ', ''],
        ...named('rotations', whole(rotations)),
      ],
    ]
  },
}

/** @param {State} state @returns {[key: string, text: string][]} the most important ones first */
function keysOf(state) {
  const { view, frozen, log, sort, owner } = state
  const quit = /** @type {[string, string]} */ (['q', owner ? 'quit …' : 'quit'])
  const pause = /** @type {[string, string]} */ (['p', frozen === null ? 'pause' : 'go on'])
  if (shown(state).snapshot === null && view === 'main') return [quit, ['h', 'help']]
  switch (view) {
    case 'help':
    case 'events':
      return [quit, ['esc', 'back'], ['↑↓', 'scroll']]
    case 'detail':
      return [quit, ['esc', 'back'], ['↑↓', 'other worker'], ['g', 'GC'], ['r', 'restart'], pause]
    case 'main':
      return [
        quit,
        ['h', 'help'],
        ['↑↓', 'select'],
        ['enter', 'detail'],
        ['s', `sort: ${sort.column}${sort.down ? '▼' : '▲'}`],
        ['c', 'chart'],
        pause,
        ['l', log.on ? 'log off' : 'log'],
        ['e', 'events'],
        ['g', 'GC'],
        ['r', 'restart'],
      ]
  }
}

export const footer = footerOf(keysOf)

/** @param {State} state @returns {import('../view/panels.js').Question} */
function contents(state) {
  const { dialog } = state
  switch (dialog?.kind) {
    case 'restart': {
      if (dialog.worker === null) {
        return {
          title: 'restart all workers?',
          text: [['one after another; clients will have to connect again', 'value']],
          keys: [
            ['a', 'restart all'],
            ['n', 'leave them'],
          ],
        }
      }
      const view = shown(state).snapshot?.workers.find(({ index }) => index === dialog.worker)
      const clients = view?.sample?.connections.connected
      const whom =
        clients === undefined
          ? 'its clients'
          : clients === 1
            ? 'its client'
            : `its ${quantity(clients)} clients`
      return {
        title: `restart worker ${dialog.worker}?`,
        text: [[clients === 0 ? 'it has no clients' : `${whom} will have to connect again`, 'value']],
        keys: [
          ['y', 'restart'],
          ['a', 'restart all'],
          ['n', 'leave it'],
        ],
      }
    }
    case 'gc':
      return {
        title: 'garbage collection',
        text: [['it blocks a worker for some milliseconds; which one?', 'value']],
        keys: [
          ...(dialog.worker === null
            ? []
            : /** @type {[string, string][]} */ ([['w', `worker ${dialog.worker}`]])),
          ['a', 'all workers'],
          ['n', 'none'],
        ],
      }
    default:
      return {
        title: 'quit',
        text: [['stop the gateway?', 'value']],
        keys: [
          ['s', 'stop it'],
          ['l', 'leave it running, without dashboard'],
          ['n', 'stay here'],
        ],
      }
  }
}

/** @param {Line[]} lines @param {State} state @returns {Line[]} */
export const withDialog = (lines, state) =>
  state.dialog === null ? lines : withQuestion(lines, state.size, contents(state))
