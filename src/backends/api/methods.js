// The server API methods by name in paths, batches and legacy commands.

import { errors } from '../../base/errors.js'
import { blockUser, invalidateUserTokens, revokeToken, unblockUser } from './access.js'
import { channels, history, historyRemove, presence, presenceStats } from './channel.js'
import { connections } from './connections.js'
import { disconnect, refresh, subscribe, unsubscribe } from './control.js'
import { info } from './info.js'
import { mapClear, mapPublish, mapReadState, mapReadStream, mapRemove, mapStats } from './maps.js'
import { ignored, string } from './params.js'
import { sharedPollPublish } from './polls.js'
import { broadcast, publish } from './publish.js'
import { request } from './requests.js'
import { deleteUserStatus, getUserStatus, updateUserStatus } from './user-status.js'

/** @import { Method } from './context.js' */

/** The server has no procedures. @type {Method} */
const rpc = {
  fields: { method: string, params: ignored },
  run() {
    throw errors.notFound
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
  ['connections', connections],
  ['info', info],
  ['rpc', rpc],
  ['map_publish', mapPublish],
  ['map_remove', mapRemove],
  ['map_read_state', mapReadState],
  ['map_read_stream', mapReadStream],
  ['map_stats', mapStats],
  ['map_clear', mapClear],
  ['shared_poll_publish', sharedPollPublish],
  ['update_user_status', updateUserStatus],
  ['get_user_status', getUserStatus],
  ['delete_user_status', deleteUserStatus],
  ['request', request],
  ['block_user', blockUser],
  ['unblock_user', unblockUser],
  ['revoke_token', revokeToken],
  ['invalidate_user_tokens', invalidateUserTokens],
])
