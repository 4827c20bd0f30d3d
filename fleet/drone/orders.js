// What comes over the line is checked here, before anything is done with it.

import { parseSubject } from '../subjects.js'
import { compare, FRACTION } from './compare.js'
import { Dialer } from './transport/dialer.js'

const PUBLISH = { via: '', channels: '', order: '', rate: FRACTION, size: 0, part: 0, parts: 0 }

/** What orders look like: everything is of the same type. @type {Record<string, object>} */
const ORDERS = {
  settings: {
    revision: 0,
    settings: {
      targets: [''],
      transport: '',
      connections: 0,
      first: 0,
      total: 0,
      concurrency: 0,
      rate: FRACTION,
      addresses: [''],
      ports: '',
      channels: [''],
      recover: true,
      user: '',
      churn: FRACTION,
      backoff: { min: 0, max: 0 },
      publishFrom: FRACTION,
    },
  },
  cut: { share: FRACTION, how: '' },
  ledgers: {},
  reckon: { ledgers: [{ channels: '', part: 0, parts: 0, start: 0, sequences: '' }] },
  restart: {},
  stop: {},
}

/**
 * @param {any} message an object
 * @param {string[]} allow
 * @param {number} capacity connections
 * @throws {Error} with one line
 */
export function checkOrder({ type, ...message }, allow, capacity) {
  if (!Object.hasOwn(ORDERS, type)) throw new Error('there is no such order')
  compare(ORDERS[type], message, type)
  const { settings, how } = message
  if (type === 'cut' && how !== 'close' && how !== 'reset') throw new Error('"how" is wrong')
  if (type !== 'settings') return
  const { targets, connections, publish, channels, user } = settings
  if (connections > capacity) throw new Error(`it can hold ${capacity} connections`)
  if (publish) compare(PUBLISH, publish, 'publish')
  if (publish?.size > 1e6 || publish?.part >= publish?.parts) throw new Error('"publish" is wrong')
  for (const template of [...channels, user, publish?.channels]) if (template) parseSubject(template)
  // Says what it does not like about targets, addresses and ports, and connects to nothing before it is told to.
  if (targets[0] || connections || publish) new Dialer({ ...settings, allow }, /** @type {any} */ ({}))
}
