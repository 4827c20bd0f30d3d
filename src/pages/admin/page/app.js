// Connects the parts of the page: login, stats stream, one view per tab.

import { buttonById, byId, inputById, onSubmit } from '../../web/dom.js'
import { channelsView } from './channels.js'
import { liveView } from './live.js'
import { Session } from './session.js'
import { StatsStream } from './stats-stream.js'
import { nodesView, usersView } from './users.js'

/** @typedef {'live' | 'channels' | 'users' | 'nodes'} View */

const session = new Session()
const stream = new StatsStream(session)
const live = liveView(session)
/** Called when a tab is shown. @type {Readonly<Record<View, () => void>>} */
const views = {
  live: live.draw,
  channels: channelsView(session),
  users: usersView(session),
  nodes: nodesView(session),
}
const NAMES = /** @type {View[]} */ (Object.keys(views))

/** Shows the view named in the URL. */
function showView() {
  const view = NAMES.find(name => location.hash === `#${name}`) ?? 'live'
  for (const name of NAMES) byId(`view-${name}`).hidden = name !== view
  for (const link of byId('tabs').querySelectorAll('a')) {
    if (link.hash === `#${view}`) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  if (session.loggedIn) views[view]()
}
addEventListener('hashchange', showView)

stream.onMessage = live.onMessage
const STATES = { connecting: 'connecting', live: 'connected', lost: 'disconnected' }
const WORDS = { connecting: 'connecting', live: 'live', lost: 'connection lost' }
/** @param {keyof typeof STATES} state @param {string} detail */
stream.onState = (state, detail) => {
  byId('link').dataset.state = STATES[state]
  byId('signed-in').dataset.state = state
  const shown = byId('link-state')
  if (shown.textContent !== WORDS[state]) shown.textContent = WORDS[state]
  const notice = byId('notice')
  notice.hidden = state !== 'lost'
  if (detail) notice.textContent = `Connection lost: ${detail}. The values shown are the last received.`
}

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

onSubmit('login-form', async () => {
  const key = inputById('login-key')
  const send = buttonById('login-send')
  send.disabled = true
  const good = await session.show('login-fault', 'Login failed', () => session.logIn(key.value))
  if (good) key.value = ''
  else key.select()
  send.disabled = false
})
byId('logout').addEventListener('click', () => session.logOut())
session.onChange = show
show(session.loggedIn)
