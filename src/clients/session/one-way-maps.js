import { bytesOf, CatchUps } from './catch-up.js'
import { WANTS_NOTHING } from './plan.js'
import { maxReplyBytes } from './replies.js'

/** @import { CatchUp } from './catch-up.js' */
/** @import { Session } from './session.js' */

/** Maximum bytes and entries of all states in one connect reply. */
const MAX_BYTES = 1024 * 1024
const MAX_ENTRIES = 10_000
/** Entries per read. */
const PAGE = 1000

/**
 * Reads the states of maps for the connect reply of a one-way client, which cannot request pages.
 * @param {Session} session @param {CatchUp[]} maps
 * @returns {Promise<number>} bytes; maps that are too large have no `state`
 */
export async function readStates(session, maps) {
  const catchUps = (session.needExtra().catchUps ??= new CatchUps())
  // Ends them, if the client disconnects.
  for (const map of maps) catchUps.begin(map)
  const room = { bytes: Math.min(MAX_BYTES, maxReplyBytes(session)), entries: MAX_ENTRIES }
  const { bytes } = room
  for (const map of maps) await readState(session, map, room)
  return bytes - room.bytes
}

/** @param {Session} session @param {CatchUp} map @param {{bytes: number, entries: number}} room left */
async function readState(session, map, room) {
  if (!map.streamed) await hold(session, map)
  const { maps } = session.context.broker
  const state = []
  let { bytes, entries } = room
  for (let cursor = ''; ; ) {
    map.check()
    const page = await maps.state(map.channel, map.query(cursor, PAGE), map.rules)
    if (cursor === '') map.freeze(page)
    const matching = map.filtered(page.entries)
    bytes -= bytesOf(matching)
    entries -= matching.length
    if (bytes < 0 || entries < 0) return
    state.push(...matching)
    cursor = page.cursor
    if (cursor === '') break
  }
  map.state = state
  Object.assign(room, { bytes, entries })
}

/** @param {Session} session @param {CatchUp} map @returns {Promise<void>} */
const hold = (session, map) =>
  new Promise((resolve, reject) => {
    session.context.hub.prepare(map.channel, WANTS_NOTHING, (error, channel) => {
      if (error) return reject(error)
      map.hold(channel)
      resolve()
    })
  })
