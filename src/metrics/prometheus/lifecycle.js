// Families of the lifecycle log. Absent without one.

import { byName, counter, gauge, plainCounter, plainGauge } from './family.js'

/** @import { LifecycleFigures } from '../schema.js' */
/** @import { Facts, Row } from './family.js' */

/**
 * One row per sink.
 * @param {Facts} facts @param {(sink: LifecycleFigures['sinks'][string]) => number} value @returns {Row[]}
 */
const bySink = ({ snapshot }, value) =>
  Object.entries(snapshot.lifecycle?.sinks ?? {}).map(([name, sink]) => [value(sink), name])

/** @type {readonly import('./family.js').PlainFamily[]} */
export const lifecycle = Object.freeze([
  counter(
    'halley_lifecycle_records_total',
    'Records that a sink of the lifecycle log has taken.',
    ['sink'],
    facts => bySink(facts, ({ written }) => written),
  ),
  counter(
    'halley_lifecycle_dropped_total',
    'Records that a sink of the lifecycle log did not get, by reason (docs/lifecycle.md).',
    ['sink', 'reason'],
    ({ snapshot }) =>
      Object.entries(snapshot.lifecycle?.sinks ?? {}).flatMap(([name, { dropped }]) => byName(dropped, name)),
  ),
  gauge('halley_lifecycle_queue_bytes', 'Memory of the records that wait for a sink.', ['sink'], facts =>
    bySink(facts, ({ queue_bytes }) => queue_bytes),
  ),
  gauge(
    'halley_lifecycle_failing',
    '1 while a sink of the lifecycle log takes no records.',
    ['sink'],
    facts => bySink(facts, ({ failing }) => Number(failing)),
  ),
  plainCounter(
    'halley_lifecycle_worker_dropped_total',
    'Events that workers have dropped because the primary did not read them.',
    ({ snapshot }) => snapshot.lifecycle?.worker_dropped,
  ),
  plainGauge(
    'halley_lifecycle_journal_clients',
    'Clients in the journal of the primary.',
    ({ snapshot }) => snapshot.lifecycle?.journal.clients,
  ),
  plainGauge(
    'halley_lifecycle_journal_bytes',
    'Memory of that journal, estimated.',
    ({ snapshot }) => snapshot.lifecycle?.journal.bytes,
  ),
  plainCounter(
    'halley_lifecycle_journal_refused_total',
    'Clients and subscriptions that found the journal full.',
    ({ snapshot }) => snapshot.lifecycle?.journal.refused,
  ),
  plainCounter(
    'halley_lifecycle_taken_over_total',
    'Disconnects of dead nodes that this node has logged.',
    ({ snapshot }) => snapshot.lifecycle?.taken_over,
  ),
])
