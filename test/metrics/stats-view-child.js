// A worker in a separate process. It watches the node and reports what it receives over the same channel.

import { StatsView } from '../../src/metrics/stats-view.js'

const view = new StatsView(message => process.send?.(message))
process.on('message', (/** @type {any} */ message) => view.onMessage(message))
view.watch(message => {
  const { type } = message
  process.send?.({ received: type, count: type === 'hello' ? message.history.length : 1 })
})
