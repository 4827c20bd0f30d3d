// Options and members for the tests of consumers of Kafka.

import { isPackage } from '../../../kit/needs.js'
import { TypeRig } from './type-rig.js'

/** The tests are skipped without its package. @type {any} */
const kafka = isPackage('@platformatic/kafka')
  ? await import('../../../../src/backends/queues/kafka/consumer.js')
  : undefined

/** @param {string[]} brokers @param {string} topic @param {object} [more] options */
export const optionsOf = (brokers, topic, more = {}) => ({
  brokers,
  topics: [topic],
  consumer_group: `group-of-${topic}`,
  max_poll_records: 100,
  fetch_max_bytes: 50_000_000,
  fetch_max_wait: 500,
  fetch_read_uncommitted: false,
  partition_queue_max_size: 1000,
  dial_timeout: 3000,
  tls: { enabled: false },
  sasl_mechanism: '',
  sasl_user: '',
  sasl_password: '',
  instance_id: '',
  method_header: 'centrifugo-method',
  publication_data_mode: { enabled: false },
  ...more,
})

/** @param {string[]} brokers @param {string} topic @param {object} [more] options */
export const memberOf = (brokers, topic, more) => new TypeRig(kafka, optionsOf(brokers, topic, more))
