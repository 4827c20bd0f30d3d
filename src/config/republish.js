// Rules for the options of republishing.

import { compileGlob } from './glob.js'
import { checkTls } from './pem.js'
import { redisShards } from './redis-shards.js'
import { show } from './values.js'

/** @import { Report } from './error.js' */
/** @import { Config, RepublishOptions } from './options.js' */
/** @import { RedisConnection } from './redis-shards.js' */

const LIST = 'republish'
/** Each has a bit of a 32-bit number. */
const MAX_ENABLED = 31
/** Who publishes: `sources` of a republisher. Publications carry the index. */
export const SOURCES = Object.freeze(['client', 'api', 'consumer'])
export const Source = Object.freeze({ CLIENT: 0, API: 1, CONSUMER: 2 })
const FIELDS = ['channel', 'namespace']

/**
 * @param {Pick<Config, 'republish'>} config
 * @returns {readonly RepublishOptions[]} the enabled ones; an index is a bit
 */
export const enabledRepublishers = config => config.republish.filter(one => one.enabled)

/**
 * The Redis of a destination.
 * @param {RepublishOptions['redis_stream']} block
 * @returns {RedisConnection}
 */
export const redisOfBlock = ({ address, user, password, db, tls }) => ({
  address: [address],
  cluster_address: [],
  sentinel_address: [],
  sentinel_master_name: '',
  sentinel_user: '',
  sentinel_password: '',
  sentinel_tls: tls,
  user,
  password,
  db,
  tls,
  // Unused: the republisher has its own.
  client_name: '',
  connect_timeout: 0,
  io_timeout: 0,
})

/** @param {string} text @returns {string} the fault, '' if there is none */
export function templateFault(text) {
  const unknown = [...text.matchAll(/\{([^{}]*)\}/g)].find(([, name]) => !FIELDS.includes(name))
  return unknown === undefined ? '' : `${show(text)}: ${unknown[0]} is not {channel} or {namespace}`
}

/** Templates and addresses, by type. */
const RULES = {
  rabbitmq: { required: ['urls'], templates: ['exchange', 'routing_key'] },
  redis_stream: { required: ['address', 'stream'], templates: ['stream'] },
  nats_jetstream: { required: ['url', 'subject'], templates: ['subject'] },
  kafka: { required: ['brokers', 'topic'], templates: ['topic'] },
}

/**
 * @param {string} path
 * @param {RepublishOptions} one
 * @param {Report} report
 */
function checkDestination(path, one, report) {
  const type = /** @type {keyof typeof RULES} */ (one.type)
  const { required, templates } = RULES[type]
  const block = /** @type {Readonly<Record<string, any>>} */ (one[type])
  const { kafka, rabbitmq, redis_stream: redis } = one
  const key = (/** @type {string} */ name) => `${path}.${type}.${name}`
  for (const name of required)
    if (block[name].length === 0) report.refuse([key(name)], 'is empty; it is required')
  for (const name of templates) {
    const fault = templateFault(block[name])
    if (fault !== '') report.refuse([key(name)], fault)
  }
  if (type === 'redis_stream' && redis.address !== '')
    redisShards(redisOfBlock(redis), (_key, text) => report.refuse([key('address')], text))
  if (type === 'rabbitmq') {
    for (const url of rabbitmq.urls)
      if (!/^amqps?:\/\/[^\s]+$/.test(url)) report.refuse([key('urls')], 'is not an address like amqp://host')
    if (one.required && !rabbitmq.confirm)
      report.refuse([key('confirm'), `${path}.required`], 'false cannot be combined with required')
  }
  if (type === 'kafka' && kafka.sasl_mechanism !== '')
    for (const name of /** @type {const} */ (['sasl_user', 'sasl_password']))
      if (kafka[name] === '') report.refuse([key(name)], 'is empty; sasl_mechanism needs it')
  if (one[type].tls.enabled) checkTls(key('tls'), one[type].tls, report)
}

/**
 * @param {Config} config
 * @param {Report} report
 */
export function checkRepublish(config, report) {
  if (enabledRepublishers(config).length > MAX_ENABLED)
    report.refuse([LIST], `has more than ${MAX_ENABLED} enabled entries`)
  for (const [i, one] of config.republish.entries()) {
    if (!one.enabled) continue
    const path = `${LIST}[${i}]`
    if (one.type === '') {
      report.refuse([`${path}.type`], 'is missing')
      continue
    }
    if (one.channels.length + one.namespaces.length === 0)
      report.refuse([`${path}.channels`, `${path}.namespaces`], 'is empty: name channels or namespaces')
    for (const glob of one.channels)
      if (compileGlob(glob) === undefined)
        report.refuse([`${path}.channels`], `${show(glob)} is not a pattern`)
    for (const name of one.namespaces) {
      if (!config.channel.namespaces.some(namespace => namespace.name === name))
        report.refuse([`${path}.namespaces`, 'channel.namespaces'], `there is no namespace ${show(name)}`)
    }
    for (const source of one.sources)
      if (!SOURCES.includes(source))
        report.refuse([`${path}.sources`], `${show(source)} is not one of ${SOURCES.map(show).join(', ')}`)
    checkDestination(path, one, report)
  }
}
