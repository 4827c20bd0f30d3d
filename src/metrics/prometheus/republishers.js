// Families of republishers. Absent without any.

import { counter, gauge, seconds } from './family.js'

/** @import { RepublisherFigures } from '../schema.js' */
/** @import { Facts, PlainFamily, Row } from './family.js' */

const NAME = Object.freeze(['republisher_name'])
const OUTCOMES = /** @type {const} */ (['confirmed', 'returned', 'refused', 'dropped'])

/**
 * One row per republisher.
 * @param {(republisher: RepublisherFigures) => number} value @returns {(facts: Facts) => Row[]}
 */
const byRepublisher =
  value =>
  ({ snapshot }) =>
    (snapshot.republishers ?? []).map(republisher => [value(republisher), republisher.name])

/** @type {readonly PlainFamily[]} */
export const republishers = Object.freeze([
  counter(
    'halley_republish_sent_total',
    'Messages of a republisher that were sent, with repeats.',
    NAME,
    byRepublisher(({ sent }) => sent),
  ),
  counter(
    'halley_republish_outcomes_total',
    'Messages that are done, by outcome: confirmed, returned, refused or dropped.',
    ['republisher_name', 'outcome'],
    ({ snapshot }) =>
      (snapshot.republishers ?? []).flatMap(one =>
        OUTCOMES.map(outcome => /** @type {Row} */ ([one[outcome], one.name, outcome])),
      ),
  ),
  counter(
    'halley_republish_lost_total',
    'Publications that the gateway has lost: `queue_full` (also dropped, above), `no_process` to take them, or in memory when `process_died`, at most.',
    ['republisher_name', 'reason'],
    ({ snapshot }) =>
      (snapshot.republishers ?? []).flatMap(
        ({ name, dropped, unreached, abandoned }) =>
          /** @type {Row[]} */ ([
            [dropped, name, 'queue_full'],
            [unreached, name, 'no_process'],
            [abandoned, name, 'process_died'],
          ]),
      ),
  ),
  gauge(
    'halley_republish_queue_messages',
    'Messages without an outcome.',
    NAME,
    byRepublisher(({ queued }) => queued),
  ),
  gauge(
    'halley_republish_queue_bytes',
    'Memory of these, about.',
    NAME,
    byRepublisher(({ queued_bytes }) => queued_bytes),
  ),
  gauge(
    'halley_republish_age_seconds',
    'Age of the oldest of these.',
    NAME,
    byRepublisher(({ age }) => seconds(age)),
  ),
  gauge(
    'halley_republish_up',
    '1 while a republisher is connected.',
    NAME,
    byRepublisher(({ up }) => Number(up)),
  ),
])
