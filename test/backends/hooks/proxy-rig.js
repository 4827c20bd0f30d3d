// What tests of event proxies need without a gateway: an event, and the failures of calls.

import { CallFailed } from '../../../src/clients/hooks/contract.js'
import { HookEvent } from '../../../src/clients/hooks/events.js'
import { textPayload } from '../../../src/clients/protocol/payload.js'

/** @param {object} [more] @returns {any} an event, as a session makes it */
export function event(more) {
  const made = new HookEvent(/** @type {any} */ ({}))
  const fields = {
    client: 'c1',
    transport: 'websocket',
    protocol: 'json',
    user: 'u1',
    method: 'm',
    channel: 'room',
    name: 'js',
    version: '1.2',
    metaText: '{"m":1.50}',
    headerLines: [],
    emulatedHeaders: {},
    payload: textPayload('{ "n" : 1.50, "n": 12345678901234567890}'),
    code: 3000,
    reason: 'gone',
    channels: ['a', 'b'],
    duration: 1.5,
    ...more,
  }
  // They hide the getters that read from a session.
  return Object.defineProperties(made, Object.getOwnPropertyDescriptors(fields))
}

/** @param {import('tap').Test} t @param {Promise<any>} promise @param {string} kind */
export async function fails(t, promise, kind) {
  const error = await promise.then(
    () => null,
    error => error,
  )
  t.ok(error instanceof CallFailed, String(error))
  t.equal(error?.kind, kind, error?.message)
}
