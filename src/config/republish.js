import { compileGlob } from './glob.js'
import { checkTls } from './pem.js'
import { redisShards } from './redis-shards.js'
import { show } from './values.js'

/** @import { Report } from './error.js' */
/** @import { Config, RepublishOptions } from './options.js' */
/** @import { RedisConnection } from './redis-shards.js' */

const LIST = 'republish'
/** Bits of a 32-bit number. */
const MAX_ENABLED = 31
/** `sources` of a republisher. Publications have the index. */
export const SOURCES = Object.freeze(['client', 'api', 'consumer'])
export const Source = Object.freeze({ CLIENT: 0, API: 1, CONSUMER: 2 })
const FIELDS = ['channel', 'namespace']

/** Indexes are bits. @param {Pick<Config, 'republish'>} config @returns {readonly RepublishOptions[]} */
export const enabledRepublishers = config => config.republish.filter(one => one.enabled)

/** @param {RepublishOptions['redis_stream']} block @returns {RedisConnection} */
export const redisOfBlock = ({ address, user, password, db, tls }) => ({
  address: [address],
  cluster_address: [],
  sentinel_address: [],
  user,
  password,
  db,
  tls,
  sentinel_master_name: '',
  sentinel_user: '',
  sentinel_password: '',
  sentinel_tls: tls,
  // Not used here.
  client_name: '',
  connect_timeout: 0,
  io_timeout: 0,
})

/** @param {string} text @returns the fault, or '' */
function templateFault(text) {
  const unknown = [...text.matchAll(/\{([^{}]*)\}/g)].find(([, name]) => !FIELDS.includes(name))
  return unknown === undefined ? '' : `${show(text)}: ${unknown[0]} is not {channel} or {namespace}`
}

const RULES = {
  rabbitmq: { required: ['urls'], templates: ['exchange', 'routing_key'] },
  redis_stream: { required: ['address', 'stream'], templates: ['stream'] },
  nats_jetstream: { required: ['url', 'subject'], templates: ['subject'] },
  kafka: { required: ['brokers', 'topic'], templates: ['topic'] },
}

/** @param {string} path @param {RepublishOptions} one @param {keyof typeof RULES} type @param {Report} report */
function checkDestination(path, one, type, report) {
  const { required, templates } = RULES[type]
  const block = /** @type {Readonly<Record<string, string>>} */ (/** @type {unknown} */ (one[type]))
  const { kafka, rabbitmq, redis_stream: redis } = one
  const key = (/** @type {string} */ name) => `${path}.${type}.${name}`
  for (const name of required) if (block[name].length === 0) report.refuse([key(name)], 'is required')
  for (const name of templates) {
    const fault = templateFault(block[name])
    if (fault !== '') report.refuse([key(name)], fault)
  }
  if (type === 'redis_stream' && redis.address !== '')
    redisShards(redisOfBlock(redis), (_key, text) => report.refuse([key('address')], text))
  if (type === 'rabbitmq') {
    for (const url of rabbitmq.urls)
      if (!/^amqps?:\/\/[^\s]+$/.test(url)) report.refuse([key('urls')], 'is not a URL like amqp://host')
    if (one.required && !rabbitmq.confirm)
      report.refuse([key('confirm'), `${path}.required`], 'false cannot be combined with required')
  }
  if (type === 'kafka' && kafka.sasl_mechanism !== '')
    for (const name of /** @type {const} */ (['sasl_user', 'sasl_password']))
      if (kafka[name] === '') report.refuse([key(name)], 'is required with sasl_mechanism')
  if (one[type].tls.enabled) checkTls(key('tls'), one[type].tls, report)
}

/** @param {Config} config @param {Report} report */
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
      report.refuse([`${path}.channels`, `${path}.namespaces`], 'is empty; set channels or namespaces')
    for (const glob of one.channels)
      if (compileGlob(glob) === undefined)
        report.refuse([`${path}.channels`], `${show(glob)} is not a pattern`)
    for (const name of one.namespaces) {
      const namespace = config.channel.namespaces.find(options => options.name === name)
      const keys = [`${path}.namespaces`, 'channel.namespaces']
      if (namespace === undefined) report.refuse(keys, `unknown namespace ${show(name)}`)
      else if (!['', 'stream'].includes(namespace.subscription_type))
        report.refuse(keys, `${show(name)} has no streams: changes of maps are not republished`)
    }
    for (const source of one.sources)
      if (!SOURCES.includes(source))
        report.refuse([`${path}.sources`], `${show(source)} is not one of ${SOURCES.map(show).join(', ')}`)
    checkDestination(path, one, one.type, report)
  }
}
