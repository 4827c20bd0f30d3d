// Status of users: when they were last active and last connected.

import { errors } from '../../base/errors.js'
import { checkState, mayHaveStatus } from '../../clients/session/user-status.js'
import { optionalString, strings } from './params.js'

/** @import { UserStatus, UserStatuses } from '../../channels/broker/contract.js' */
/** @import { ReplyError } from '../../base/errors.js' */
/** @import { ApiContext, Method } from './context.js' */

const MAX_USERS = 1000

/**
 * @param {string[]} users @param {ApiContext} context
 * @returns {UserStatuses} @throws {ReplyError} 108, 107 or 106
 */
function storeFor(users, { broker: { statuses } }) {
  if (statuses === null) throw errors.notAvailable
  if (users.length === 0) throw errors.badRequest
  if (users.length > MAX_USERS) throw errors.limitExceeded
  if (!users.every(mayHaveStatus)) throw errors.badRequest
  return statuses
}

/** @type {Method} */
export const updateUserStatus = {
  fields: { users: strings, state: optionalString },
  async run({ users, state }, context) {
    await storeFor(users, context).update(users, { active: true, state: checkState(state) })
    return '{}'
  },
}

/** @param {string} user @param {UserStatus} status @returns {string} JSON text */
function statusText(user, { active, online, state }) {
  let text = `"user":${JSON.stringify(user)}`
  if (active > 0) text += `,"active":${active}`
  if (online > 0) text += `,"online":${online}`
  if (state !== '') text += `,"state":${JSON.stringify(state)}`
  return `{${text}}`
}

/** @type {Method} */
export const getUserStatus = {
  fields: { users: strings },
  async run({ users }, context) {
    const statuses = await storeFor(users, context).get(users)
    return `{"statuses":[${statuses.map((status, i) => statusText(users[i], status)).join(',')}]}`
  },
}

/** @type {Method} */
export const deleteUserStatus = {
  fields: { users: strings },
  async run({ users }, context) {
    await storeFor(users, context).remove(users)
    return '{}'
  },
}
