import { didYouMean } from './nearest.js'
import { consumerTypes, unsupportedConsumerTypes } from './options/consumers.js'
import { checkTls } from './pem.js'
import { parseDsn } from './postgres-dsn.js'
import { redisShards } from './redis-shards.js'
import { show } from './values.js'

/** @import { Report } from './error.js' */
/** @import { Config, ConsumerOptions, RedisOptions } from './options.js' */
/** @import { RedisConnection, RedisShard } from './redis-shards.js' */
/** @typedef {keyof typeof consumerTypes} ConsumerType */

const NAME = /^[a-zA-Z0-9_]+$/

/** @param {Config} config @returns {(ConsumerOptions & {type: ConsumerType})[]} */
export const runningConsumers = ({ consumers }) =>
  /** @type {(ConsumerOptions & {type: ConsumerType})[]} */ (
    consumers.filter(({ enabled, type }) => enabled && Object.hasOwn(consumerTypes, type))
  )

/**
 * @template {string} K
 * @param {string} path @param {Readonly<Record<K, string | readonly string[]>>} options @param {readonly K[]} keys
 * @param {Report} report
 */
function checkRequired(path, options, keys, report) {
  for (const key of keys) if (options[key].length === 0) report.refuse([`${path}.${key}`], 'is missing')
}

/**
 * @param {string} path @param {Pick<RedisOptions, 'tls' | 'sentinel_tls'>} options
 * @param {readonly RedisShard[]} shards @param {Report} report
 */
export function checkRedisTls(path, options, shards, report) {
  if (options.tls.enabled || shards.some(({ tls }) => tls)) checkTls(`${path}.tls`, options.tls, report)
  const toSentinels = shards.some(({ kind, sentinel_tls: tls }) => kind === 'sentinel' && tls)
  if (options.sentinel_tls.enabled || toSentinels)
    checkTls(`${path}.sentinel_tls`, options.sentinel_tls, report)
}

/** @param {string} path @param {RedisConnection} options @param {Report} report */
function checkRedisConnection(path, options, report) {
  const { address, cluster_address: cluster, sentinel_address: sentinels } = options
  if (cluster.length === 0 && sentinels.length === 0 && address.every(one => one === ''))
    return report.refuse([`${path}.address`], 'is missing')
  const before = report.faults.length
  const fault = (/** @type {string} */ key, /** @type {string} */ text) =>
    report.refuse([key, `${path}.address`], text)
  const shards = redisShards(options, fault, path)
  if (report.faults.length === before && shards.length !== 1)
    report.refuse([`${path}.address`], `has ${shards.length} Redis deployments; only one is allowed`)
  checkRedisTls(path, options, shards, report)
}

/**
 * A publication needs channels.
 * @param {string} path @param {Readonly<Record<string, string | boolean>>} mode @param {Report} report
 */
function checkDataMode(path, mode, report) {
  const key = Object.keys(mode).find(name => name.startsWith('channels_'))
  if (mode.enabled && key !== undefined && mode[key] === '')
    report.refuse([`${path}.publication_data_mode.${key}`], 'is empty')
}

/** @type {{[T in ConsumerType]: (path: string, options: ConsumerOptions[T], report: Report) => void}} */
const CHECKS = {
  postgresql(path, options, report) {
    checkRequired(path, options, ['dsn', 'outbox_table_name'], report)
    for (const key of /** @type {const} */ (['dsn', 'partition_notification_dsn'])) {
      if (options[key] === '') continue
      try {
        parseDsn(options[key])
      } catch (error) {
        report.refuse([`${path}.${key}`], error.message)
      }
    }
  },
  nats_jetstream(path, options, report) {
    checkRequired(path, options, ['url', 'stream_name', 'durable_consumer_name'], report)
  },
  aws_sqs(path, options, report) {
    checkRequired(path, options, ['queues'], report)
    if (options.assume_role_arn !== '')
      report.refuse([`${path}.assume_role_arn`], 'is not supported; use a credentials_profile with role_arn')
  },
  redis_stream(path, options, report) {
    checkRequired(path, options, ['streams', 'consumer_group', 'payload_value'], report)
    checkRedisConnection(path, options, report)
    const twice = options.streams.find((key, i) => options.streams.includes(key, i + 1))
    if (twice !== undefined) report.refuse([`${path}.streams`], `${show(twice)} is a duplicate`)
  },
  kafka(path, options, report) {
    checkRequired(path, options, ['brokers', 'topics', 'consumer_group'], report)
    for (const key of /** @type {const} */ (['topics', 'consumer_group', 'instance_id'])) {
      if ([options[key]].flat().some(text => /\s/.test(text)))
        report.refuse([`${path}.${key}`], 'contains white space')
    }
    if (options.partition_queue_max_size === 0)
      report.refuse([`${path}.partition_queue_max_size`], 'is 0; it must be -1 or at least 1')
    if (options.sasl_mechanism !== '') checkRequired(path, options, ['sasl_user', 'sasl_password'], report)
    if (options.assume_role_arn !== '')
      report.refuse([`${path}.assume_role_arn`], 'needs aws-msk-iam, which Halley does not support')
  },
  rabbitmq(path, options, report) {
    checkRequired(path, options, ['urls', 'queues'], report)
    // Omit the address: it may contain a password.
    if (options.urls.some(url => !/^amqps?:\/\//.test(url) || !URL.canParse(url)))
      report.refuse([`${path}.urls`], 'has an entry that is not an amqp:// or amqps:// URL')
    for (const { queue } of options.bindings) {
      if (!options.queues.includes(queue))
        report.refuse([`${path}.bindings`], `${show(queue)} is not one of the queues`)
    }
  },
}

/**
 * @template {ConsumerType} T
 * @param {string} path @param {T} type @param {ConsumerOptions} consumer @param {Report} report
 */
function checkBlock(path, type, consumer, report) {
  const options = consumer[type]
  CHECKS[type](path, options, report)
  if (type !== 'redis_stream' && 'tls' in options && options.tls.enabled)
    checkTls(`${path}.tls`, options.tls, report)
  if ('publication_data_mode' in options) checkDataMode(path, options.publication_data_mode, report)
}

/** @param {Config} config @param {Report} report */
export function checkConsumers(config, report) {
  for (const [i, consumer] of config.consumers.entries()) {
    const path = `consumers[${i}]`
    const { name, type, enabled } = consumer
    if (name.length >= 2 && !NAME.test(name))
      report.refuse([`${path}.name`], `${show(name)} may contain only the characters a-zA-Z0-9_`)
    const known = Object.keys(consumerTypes)
    const types = [...known, ...unsupportedConsumerTypes]
    if (unsupportedConsumerTypes.includes(type)) {
      const what = 'Centrifugo consumer type that Halley does not support yet; the consumer does not run'
      if (enabled) report.warn(`${path}.type`, `${show(type)}: ${what}`)
    } else if (!known.includes(type)) {
      const what = type === '' ? 'is missing' : `${show(type)} is not a consumer type`
      report.refuse([`${path}.type`], `${what}${didYouMean(type, types)}; types: ${types.join(', ')}`)
    } else if (enabled) checkBlock(`${path}.${type}`, /** @type {ConsumerType} */ (type), consumer, report)
  }
}
