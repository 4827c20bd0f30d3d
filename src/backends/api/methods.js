// The methods of the server API by their names in paths, batches and legacy commands.

import { errors } from '../../base/errors.js'
import { channels, history, historyRemove, presence, presenceStats } from './channel.js'
import { disconnect, refresh, subscribe, unsubscribe } from './control.js'
import { info } from './info.js'
import { ignored, string } from './params.js'
import { broadcast, publish } from './publish.js'

/** @import { Method } from './context.js' */

/** The server has no procedures of its own. @type {Method} */
const rpc = {
  fields: { method: string, params: ignored },
  run() {
    throw errors.notFound
  },
}

/** Methods of other channel types: here every channel is a stream. @type {Method} */
const otherType = {
  fields: { channel: string },
  run({ channel }, { rules }) {
    throw channel === '' || rules.resolve(channel) !== undefined ? errors.badRequest : errors.unknownChannel
  },
}

/** @type {ReadonlyMap<string, Method>} */
export const methods = new Map([
  ['publish', publish],
  ['broadcast', broadcast],
  ['subscribe', subscribe],
  ['unsubscribe', unsubscribe],
  ['disconnect', disconnect],
  ['refresh', refresh],
  ['presence', presence],
  ['presence_stats', presenceStats],
  ['history', history],
  ['history_remove', historyRemove],
  ['channels', channels],
  ['info', info],
  ['rpc', rpc],
  ['map_publish', otherType],
  ['map_remove', otherType],
  ['map_read_state', otherType],
  ['map_read_stream', otherType],
  ['map_stats', otherType],
  ['map_clear', otherType],
  ['shared_poll_publish', otherType],
])
