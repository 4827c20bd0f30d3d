// What comes over the line is checked here, before anything is done with it.

import { parseSubject } from '../subjects.js'
import { compare, FRACTION } from './compare.js'
import { Dialer } from './transport/dialer.js'

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
const PUBLISH = { via: '', channels: '', order: '', rate: FRACTION, size: 0, part: 0, parts: 0 }

/**
 * @param {any} message an object
 * @param {string[]} allow
 * @param {number} capacity connections
 * @throws {Error} with one line
 */
export function checkOrder(message, allow, capacity) {
  const { type } = message
  if (!Object.hasOwn(ORDERS, type)) throw new Error(`there is no order ${`${type}`.slice(0, 50)}`)
  compare(ORDERS[type], message, type)
  if (type === 'cut' && !/^(close|reset)$/.test(message.how)) throw new Error('"how" is close or reset')
  if (type !== 'settings') return
  /** @type {import('../schema.js').Settings} */
  const settings = message.settings
  const { targets, connections, publish, channels, user, transport } = settings
  if (!/^(uni_)?(websocket|http_stream|sse)$|^long_poll$/.test(transport))
    throw new Error(`transport "${transport}" is not known`)
  if (publish !== null) {
    compare(PUBLISH, publish, 'publish')
    if (publish.size > 1e6 || publish.part >= publish.parts) throw new Error('"publish" is not possible')
  }
  if (connections > capacity)
    throw new Error(`this drone can hold ${capacity} connections, not ${connections}`)
  for (const template of [...channels, user, publish?.channels]) if (template) parseSubject(template)
  // Says what it does not like about targets, addresses and ports, and connects to nothing before it is told to.
  if (targets.length > 0 || connections > 0 || publish)
    new Dialer({ ...settings, allow }, /** @type {any} */ ({}))
}
