// A worker that watches the node, in a process of its own: says over the same channel what it has heard.

import { StatsView } from '../../src/stats/stats-view.js'

const view = new StatsView(message => process.send?.(message))
process.on('message', (/** @type {any} */ message) => view.onMessage(message))
view.watch(message => {
  const { type } = message
  process.send?.({ heard: type, count: type === 'hello' ? message.history.length : 1 })
})
