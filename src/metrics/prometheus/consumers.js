// Families of consumers. Absent without any.

import { byName, counter, gauge, seconds } from './family.js'

/** @import { ConsumerFigures } from '../schema.js' */
/** @import { Facts, PlainFamily, Row } from './family.js' */

const NAME = Object.freeze(['consumer_name'])

/**
 * One row per consumer.
 * @param {(consumer: ConsumerFigures) => number | null} value @returns {(facts: Facts) => Row[]}
 */
const byConsumer =
  value =>
  ({ snapshot }) =>
    (snapshot.consumers?.list ?? []).map(consumer => [value(consumer), consumer.name])

/** Names of Centrifugo. @type {readonly PlainFamily[]} */
export const centrifugoConsumers = Object.freeze([
  counter(
    'centrifugo_consumers_messages_processed_total',
    'Messages of a consumer that are done, skipped ones included.',
    NAME,
    byConsumer(({ processed }) => processed),
  ),
  counter(
    'centrifugo_consumers_errors_total',
    'Failed tries of messages, and failures of the source.',
    NAME,
    byConsumer(({ errors }) => errors),
  ),
])

/** @type {readonly PlainFamily[]} */
export const consumers = Object.freeze([
  counter(
    'halley_consumers_skipped_total',
    'Bad messages, which are not tried again, by reason (docs/consumers.md).',
    ['consumer_name', 'reason'],
    ({ snapshot }) => (snapshot.consumers?.list ?? []).flatMap(({ name, skipped }) => byName(skipped, name)),
  ),
  counter(
    'halley_consumers_retries_total',
    'Failed tries of messages that are tried again.',
    NAME,
    byConsumer(({ retries }) => retries),
  ),
  gauge(
    'halley_consumers_age_seconds',
    'Age of the oldest message in work.',
    NAME,
    byConsumer(({ age }) => seconds(age)),
  ),
  gauge(
    'halley_consumers_backoff_seconds',
    'Delay before the next try of what fails.',
    NAME,
    byConsumer(({ backoff }) => seconds(backoff)),
  ),
  gauge(
    'halley_consumers_lag_messages',
    'Messages that wait at the source, where it says so.',
    NAME,
    byConsumer(({ lag }) => lag),
  ),
])
