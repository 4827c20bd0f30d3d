// Connects the parts of the page: session, stats stream, views.

import { byId, inputById } from '../../web/dom.js'
import { Channels } from './channels.js'
import { ChartsPanel } from './charts-panel.js'
import { Events } from './events.js'
import { History } from './history.js'
import { listenForLogin } from './login.js'
import { Nodes } from './nodes.js'
import { Publish } from './publish.js'
import { Queues } from './queues.js'
import { Session } from './session.js'
import { StatsStream } from './stats-stream.js'
import { listenForTabs } from './tabs.js'
import { Users } from './users.js'
import { Vitals } from './vitals.js'
import { Workers } from './workers.js'

/** @import { Snapshot, StatsMessage } from '../../../metrics/schema.js' */

const session = new Session()
const stream = new StatsStream(session)
const vitals = new Vitals()
const charts = new ChartsPanel()
const workers = new Workers(session)
const queues = new Queues()
const events = new Events()
const channels = new Channels(session)
const publish = new Publish(session)
const history = new History(session)
const users = new Users(session)
const nodes = new Nodes(session)

/** @param {Snapshot} snapshot */
function showSnapshot(snapshot) {
  vitals.show(snapshot)
  workers.show(snapshot.workers)
  queues.show(snapshot)
}

/** @param {StatsMessage} message */
stream.onMessage = message => {
  if (message.type === 'hello') {
    charts.reset(message.history)
    events.reset(message.events)
    const last = message.history.at(-1)
    if (last) showSnapshot(last)
  } else if (message.type === 'snapshot') {
    const { snapshot } = message
    showSnapshot(snapshot)
    charts.add(snapshot)
    events.add(snapshot.events)
  }
}

const STATES = { connecting: 'connecting', live: 'connected', lost: 'disconnected' }
const WORDS = { connecting: 'connecting', live: 'live', lost: 'connection lost' }
/** @param {'connecting' | 'live' | 'lost'} state @param {string} detail */
stream.onState = (state, detail) => {
  byId('link').dataset.state = STATES[state]
  byId('signed-in').dataset.state = state
  const said = byId('link-state')
  if (said.textContent !== WORDS[state]) said.textContent = WORDS[state]
  const notice = byId('notice')
  notice.hidden = state !== 'lost'
  if (detail) notice.textContent = `Connection lost: ${detail}. The values shown are the last received.`
}

channels.onPublish = (/** @type {string} */ channel) => publish.choose(channel)
channels.onHistory = (/** @type {string} */ channel) => history.choose(channel)
const showView = listenForTabs(view => {
  if (!session.loggedIn) return
  if (view === 'live') charts.draw()
  if (view === 'channels') channels.refresh()
  if (view === 'users') users.refresh()
  if (view === 'nodes') nodes.refresh()
})

/** @param {boolean} loggedIn */
function show(loggedIn) {
  byId('login').hidden = loggedIn
  byId('signed-in').hidden = !loggedIn
  byId('link').hidden = !loggedIn
  if (loggedIn) {
    showView()
    stream.start()
  } else {
    stream.stop()
    inputById('login-key').focus()
  }
}

session.onChange = show
listenForLogin(session)
show(session.loggedIn)
