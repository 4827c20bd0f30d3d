// Rules of occupied and vacated events and of occupancy, without the table of options: workers load this file.

import { logsLifecycle } from './lifecycle.js'
import { namespaceOfPrefix } from './maps.js'
import { show } from './values.js'

/** @import { Report } from './error.js' */
/** @import { ChannelOptions, Config } from './options.js' */

const NAMESPACES = 'channel.namespaces'
const WITHOUT_NAMESPACE = 'channel.without_namespace'

/** Whether the lifecycle log asks for these events of all channels with presence. @param {Config} config */
export function logsChannelStates(config) {
  const { events } = config.lifecycle
  return logsLifecycle(config) && (events.includes('occupied') || events.includes('vacated'))
}

/** @param {string} path @param {ChannelOptions} options @param {Config} config @param {Report} report */
function checkOptions(path, options, { channel }, report) {
  const { presence, state_proxy_enabled: reports, occupancy_channel_prefix: prefix } = options
  const refuse = (/** @type {string} */ name, /** @type {string} */ text) =>
    report.refuse([`${path}.${name}`, `${path}.presence`], text)
  if (reports && !presence) refuse('state_proxy_enabled', 'true needs presence: it counts the subscribers')
  const key = `${path}.occupancy_channel_prefix`
  if (prefix === '') {
    if (options.occupancy_users)
      report.warn(`${path}.occupancy_users`, 'has no effect without occupancy_channel_prefix')
    return
  }
  if (!presence)
    refuse('occupancy_channel_prefix', `${show(prefix)} needs presence: it counts the subscribers`)
  const found = namespaceOfPrefix(key, prefix, channel, report)
  if (found === null) return
  const { target, where } = found
  if (target.occupancy_channel_prefix !== '')
    report.refuse(
      [key, NAMESPACES],
      `${where} has an occupancy_channel_prefix itself: counts cannot be counted`,
    )
  if (target.subscription_type !== '' && target.subscription_type !== 'stream')
    report.refuse([key, NAMESPACES], `${where} has subscription_type ${show(target.subscription_type)}`)
  else if (target.history_size === 0 || target.history_ttl === 0)
    report.warn(key, `${where} has no history: subscribers get a count at its next change, not at once`)
}

/** @param {Config} config @param {Report} report */
export function checkChannelStates(config, report) {
  checkOptions(WITHOUT_NAMESPACE, config.channel.without_namespace, config, report)
  for (const [i, options] of config.channel.namespaces.entries())
    checkOptions(`${NAMESPACES}[${i}]`, options, config, report)
}
