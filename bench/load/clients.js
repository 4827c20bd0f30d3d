// A process of the load generator that holds clients.

import { answer } from './child.js'
import { Members } from './members.js'
import { Subscribers } from './subscribers.js'

/** @type {Subscribers | Members} */
let group

answer({
  start: plan => {
    group = plan.subscriptions > 0 ? new Members(plan) : new Subscribers(plan)
    return group.connect()
  },
  subscribe: () => /** @type {Members} */ (group).subscribe(),
  leave: ({ share }) => /** @type {Subscribers} */ (group).leave(share),
  progress: () => group.progress(),
  measure: span => group.measure(span),
  report: () => group.report(),
})
