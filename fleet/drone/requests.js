// Validates requests from the controller.

import { parseTemplate } from '../channel-template.js'
import { flag, ledger, listOf, number, object, oneOf, orNull, text, whole } from '../link/shape.js'
import { Dialer } from './transport/dialer.js'

const texts = listOf(text())

/** @param {import('../link/shape.js').Shape} each @returns {import('../link/shape.js').Shape} */
const optional = each => (value, field) => {
  if (value !== undefined) each(value, field)
}

const publish = object({
  via: oneOf('api', 'single', 'nchan', 'client'),
  channels: text(1000, 1),
  order: oneOf('random', 'sequential'),
  rate: number(),
  size: whole(0, 1e6),
  part: whole(),
  parts: whole(1),
  targets: optional(texts),
  flat: optional(flag),
  lanes: optional(whole(0, 10_000)),
})

/** @type {Record<string, import('../link/shape.js').Shape>} */
const REQUESTS = {
  settings: object({
    revision: whole(),
    settings: object({
      targets: texts,
      transport: text(),
      connections: whole(),
      first: whole(),
      total: whole(),
      concurrency: whole(),
      rate: number(),
      addresses: texts,
      ports: text(),
      channels: texts,
      recover: flag,
      user: text(),
      churn: number(),
      backoff: object({ min: number(), max: number() }),
      publish: orNull(publish),
      publishFrom: number(),
    }),
  }),
  cut: object({ share: number(0, 1), how: oneOf('close', 'reset') }),
  ledgers: object({}),
  reconcile: object({ ledgers: listOf(ledger, 100_000) }),
  restart: object({}),
  stop: object({}),
}

/** @param {any} message an object @param {string[]} allow @param {number} capacity connections */
export function checkRequest(message, allow, capacity) {
  const { type } = message
  if (typeof type !== 'string' || !Object.hasOwn(REQUESTS, type))
    throw new Error(
      `unknown request ${JSON.stringify(type)?.slice(0, 50)}; known requests are ${Object.keys(REQUESTS).join(', ')}`,
    )
  REQUESTS[type](message, type)
  if (type !== 'settings') return
  /** @type {import('../schema.js').Settings} */
  const settings = message.settings
  const { targets, connections, publish, channels, user } = settings
  if (connections > capacity)
    throw new Error(`connections is ${connections}: this drone can hold at most ${capacity}`)
  if (publish && publish.part >= publish.parts)
    throw new Error(`publish.part is ${publish.part}: it must be less than publish.parts, ${publish.parts}`)
  for (const template of [...channels, user, publish?.channels]) if (template) parseTemplate(template)
  // The constructor checks targets, addresses and ports, and opens no connection.
  if (targets.length > 0 || connections > 0 || publish)
    new Dialer(
      { ...settings, targets: [...targets, ...(publish?.targets ?? [])], allow },
      /** @type {any} */ ({}),
    )
}
