import { MAX_OVERRIDES } from './options/rate-limits.js'
import { NAMESPACES } from './options.js'
import { show } from './values.js'

/** @import { Report } from './error.js' */
/** @import { Config } from './options.js' */

/**
 * @typedef {{readonly interval: number, readonly rate: number}} Bucket interval: ms
 * @typedef {{readonly enabled: boolean, readonly buckets: readonly Bucket[]}} LimitBlock
 * @typedef {LimitBlock & {namespace_overrides?: readonly (LimitBlock & {namespace_name: string})[],
 *   method_overrides?: readonly (LimitBlock & {method: string})[], method_override?: Readonly<Record<string,
 *   LimitBlock>>}} CommandBlock
 */

const PATH = 'client.rate_limit'
export const REDIS_LIMITS = `${PATH}.redis_user_command.redis`
export const COMMAND_LAYERS = /** @type {const} */ (['client_command', 'user_command', 'redis_user_command'])

/** Block name -> block. @param {Record<string, any>} layer @returns {[command: string, block: CommandBlock][]} */
export const blocksOf = layer => Object.entries(layer).filter(([, value]) => Array.isArray(value?.buckets))

/** @param {CommandBlock} block of rpc @returns {(LimitBlock & {method: string})[]} of both forms */
export const methodOverrides = ({ method_overrides = [], method_override = {} }) => [
  ...method_overrides,
  ...Object.entries(method_override).map(([method, limit]) => ({ method, ...limit })),
]

/** @param {string} path @param {readonly string[]} names @param {Report} report */
function checkDuplicates(path, names, { refuse }) {
  const twice = names.find((name, i) => names.indexOf(name) < i)
  if (twice !== undefined) refuse([path], `${show(twice)} is a duplicate`)
}

/** @param {string} path @param {CommandBlock} block @param {Config['channel']} channel @param {Report} report */
function checkBlock(path, block, { namespaces }, report) {
  const { namespace_overrides = [], method_overrides = [], method_override = {} } = block
  const [newer, older] = [`${path}.method_overrides`, `${path}.method_override`]
  const methods = Object.keys(method_override)
  if (methods.length > 0 && method_overrides.length > 0)
    report.refuse([newer, older], `cannot be combined with ${older}; use only method_overrides`)
  if (methods.length > MAX_OVERRIDES)
    report.refuse([older], `${methods.length} entries are too many; at most ${MAX_OVERRIDES}`)
  const names = namespace_overrides.map(({ namespace_name }) => namespace_name)
  const ofMethods = method_overrides.map(({ method }) => method)
  checkDuplicates(`${path}.namespace_overrides`, names, report)
  checkDuplicates(newer, ofMethods, report)
  const unknown = names.find(name => name !== '' && !namespaces.some(namespace => namespace.name === name))
  if (unknown !== undefined)
    report.refuse([`${path}.namespace_overrides`, NAMESPACES], `unknown namespace ${show(unknown)}`)
  if (block.enabled && block.buckets.length === 0) report.warn(path, 'is enabled, but has no buckets')
}

/** @param {Config} config @param {Report} report */
export function checkRateLimits({ client, channel, engine }, report) {
  for (const layer of [...COMMAND_LAYERS, /** @type {const} */ ('client_error')])
    for (const [command, block] of blocksOf(client.rate_limit[layer]))
      checkBlock(`${PATH}.${layer}.${command}`, block, channel, report)
  const { enabled, redis } = client.rate_limit.redis_user_command
  if (enabled && redis.reuse_from_engine && engine.type !== 'redis')
    report.refuse([`${REDIS_LIMITS}.reuse_from_engine`, 'engine.type'], 'true needs engine.type "redis"')
}
