import { people } from '../format.js'
import { shown } from '../picture.js'
import { withQuestion } from '../view/dialog.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('../state.js').State} State
 */

/**
 * @param {State} state with a dialog
 * @returns {import('../view/dialog.js').Question}
 */
function contents(state) {
  const { dialog } = state
  switch (dialog?.kind) {
    case 'restart': {
      const view = shown(state).snapshot?.workers.find(({ index }) => index === dialog.worker)
      const clients = view?.sample?.connections.connected
      const whom =
        clients === undefined
          ? 'its clients'
          : clients === 1
            ? 'its client'
            : `its ${people(clients)} clients`
      return {
        title: `restart worker ${dialog.worker}?`,
        text: [[clients === 0 ? 'it has no clients' : `${whom} will have to connect again`, 'value']],
        keys: [
          ['y', 'restart'],
          ['n', 'leave it'],
        ],
      }
    }
    case 'gc':
      return {
        title: 'garbage collection',
        text: [['it stops a worker for some milliseconds; which one?', 'value']],
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
        text: [['what is to become of the gateway?', 'value']],
        keys: [
          ['s', 'stop it'],
          ['l', 'leave it running, without dashboard'],
          ['n', 'stay here'],
        ],
      }
  }
}

/**
 * @param {Line[]} lines
 * @param {State} state
 * @returns {Line[]} with the question in front of them, if there is one
 */
export const withDialog = (lines, state) =>
  state.dialog === null ? lines : withQuestion(lines, state.size, contents(state))
