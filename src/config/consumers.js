// Rules of `consumers`.

import { didYouMean } from './nearest.js'
import { consumerTypes, unsupportedConsumerTypes } from './options/consumers.js'
import { tlsFaults } from './pem.js'
import { parseDsn } from './postgres-dsn.js'
import { redisShards } from './redis-shards.js'
import { show } from './values.js'

/** @import { Report } from './error.js' */

const NAME = /^[a-zA-Z0-9_]+$/

/** @param {Record<string, any>} config @returns {any[]} consumers that run */
export const runningConsumers = ({ consumers }) =>
  consumers.filter((/** @type {any} */ { enabled, type }) => enabled && Object.hasOwn(consumerTypes, type))

/**
 * @param {string} path of the block @param {Record<string, any>} options @param {string[]} keys that must be set
 * @param {Report} report
 */
export function checkRequired(path, options, keys, report) {
  for (const key of keys) {
    const value = options[key]
    if (value.length === 0) report.refuse([`${path}.${key}`], 'is missing')
  }
}

/**
 * The connection to one Redis.
 * @param {string} path of the block @param {Record<string, any>} options @param {Report} report
 */
export function checkRedisConnection(path, options, report) {
  const { address, cluster_address: cluster, sentinel_address: sentinels } = options
  if (
    cluster.length === 0 &&
    sentinels.length === 0 &&
    address.every((/** @type {string} */ one) => one === '')
  )
    return report.refuse([`${path}.address`], 'is missing')
  let faults = 0
  const shards = redisShards(
    options,
    (key, text) => {
      faults++
      report.refuse([key, `${path}.address`], text)
    },
    path,
  )
  if (faults === 0 && shards.length !== 1)
    report.refuse([`${path}.address`], `names ${shards.length} deployments of Redis, it must be one`)
  for (const [block, used] of [
    ['tls', options.tls.enabled || shards.some(({ tls }) => tls)],
    ['sentinel_tls', options.sentinel_tls.enabled || shards.some(({ sentinel_tls: tls }) => tls)],
  ]) {
    if (!used) continue
    for (const [key, fault] of tlsFaults(options[block])) report.refuse([`${path}.${block}.${key}`], fault)
  }
}

/**
 * Publication data mode: without channels nothing could be published.
 * @param {string} path of the block of the type @param {Record<string, any>} options @param {Report} report
 */
export function checkDataMode(path, { publication_data_mode: mode }, report) {
  if (!mode.enabled) return
  const key = Object.keys(mode).find(name => name.startsWith('channels_'))
  if (key !== undefined && mode[key] === '')
    report.refuse([`${path}.publication_data_mode.${key}`], 'is empty')
}

/** @param {string} path of the block @param {Record<string, any>} options @param {Report} report */
function checkTls(path, { tls }, report) {
  if (!tls.enabled) return
  for (const [key, fault] of tlsFaults(tls)) report.refuse([`${path}.tls.${key}`], fault)
}

/** Type -> rules of its block. @type {Record<string, (path: string, options: any, report: Report) => void>} */
const CHECKS = {
  postgresql(path, options, report) {
    checkRequired(path, options, ['dsn', 'outbox_table_name'], report)
    for (const key of ['dsn', 'partition_notification_dsn']) {
      if (options[key] === '') continue
      try {
        parseDsn(options[key])
      } catch (error) {
        report.refuse([`${path}.${key}`], error.message)
      }
    }
    checkTls(path, options, report)
  },
  nats_jetstream(path, options, report) {
    checkRequired(path, options, ['url', 'stream_name', 'durable_consumer_name'], report)
    checkTls(path, options, report)
    checkDataMode(path, options, report)
  },
  aws_sqs(path, options, report) {
    checkRequired(path, options, ['queues'], report)
    checkDataMode(path, options, report)
    if (options.assume_role_arn !== '')
      report.refuse([`${path}.assume_role_arn`], 'is not supported: name a credentials_profile with role_arn')
  },
  redis_stream(path, options, report) {
    checkRequired(path, options, ['streams', 'consumer_group', 'payload_value'], report)
    checkRedisConnection(path, options, report)
    checkDataMode(path, options, report)
    const twice = options.streams.find((/** @type {string} */ key, /** @type {number} */ i) =>
      options.streams.includes(key, i + 1),
    )
    if (twice !== undefined) report.refuse([`${path}.streams`], `${show(twice)} is there twice`)
  },
  kafka(path, options, report) {
    checkRequired(path, options, ['brokers', 'topics', 'consumer_group'], report)
    for (const key of ['topics', 'consumer_group', 'instance_id']) {
      if ([options[key]].flat().some((/** @type {string} */ text) => /\s/.test(text)))
        report.refuse([`${path}.${key}`], 'has white space')
    }
    if (options.partition_queue_max_size === 0)
      report.refuse([`${path}.partition_queue_max_size`], 'is 0, it must be -1 or at least 1')
    if (options.sasl_mechanism !== '') checkRequired(path, options, ['sasl_user', 'sasl_password'], report)
    if (options.assume_role_arn !== '')
      report.refuse([`${path}.assume_role_arn`], 'needs aws-msk-iam, which Halley does not support')
    checkTls(path, options, report)
    checkDataMode(path, options, report)
  },
  rabbitmq(path, options, report) {
    checkRequired(path, options, ['urls', 'queues'], report)
    // Without the address: it may have a password.
    if (options.urls.some((/** @type {string} */ url) => !/^amqps?:\/\//.test(url) || !URL.canParse(url)))
      report.refuse([`${path}.urls`], 'has an entry that is no amqp:// or amqps:// address')
    for (const { queue } of options.bindings) {
      if (!options.queues.includes(queue))
        report.refuse([`${path}.bindings`], `${show(queue)} is not among the queues`)
    }
    checkTls(path, options, report)
    checkDataMode(path, options, report)
  },
}

/** @param {Record<string, any>} config complete @param {Report} report */
export function checkConsumers(config, report) {
  for (const [i, consumer] of config.consumers.entries()) {
    const path = `consumers[${i}]`
    const { name, type, enabled } = consumer
    if (name.length >= 2 && !NAME.test(name))
      report.refuse([`${path}.name`], `${show(name)} must be of the characters a-zA-Z0-9_`)
    const known = Object.keys(consumerTypes)
    if (unsupportedConsumerTypes.includes(type)) {
      const what = 'Centrifugo type of consumers that Halley does not support yet; the consumer does not run'
      if (enabled) report.warn(`${path}.type`, `${show(type)}: ${what}`)
    } else if (!known.includes(type)) {
      const what = type === '' ? 'is missing' : `${show(type)} is no type of consumers`
      const types = [...known, ...unsupportedConsumerTypes]
      report.refuse([`${path}.type`], `${what}${didYouMean(type, types)}; types: ${types.join(', ')}`)
    } else if (enabled) CHECKS[type](`${path}.${type}`, consumer[type], report)
  }
}
