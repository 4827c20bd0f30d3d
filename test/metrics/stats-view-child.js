// A worker in a process of its own. It watches the node and reports over the same channel what it has received.

import { StatsView } from '../../src/metrics/stats-view.js'

const view = new StatsView(message => process.send?.(message))
process.on('message', (/** @type {any} */ message) => view.onMessage(message))
view.watch(message => {
  const { type } = message
  process.send?.({ received: type, count: type === 'hello' ? message.history.length : 1 })
})
