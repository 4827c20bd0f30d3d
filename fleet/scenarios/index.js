import { didYouMean } from '../../src/config/nearest.js'
import { bigChannel } from './big-channel.js'
import { chaos } from './chaos.js'
import { churn } from './churn.js'
import { cometMillion } from './comet-million.js'
import { fan100 } from './fan-100.js'
import { ladder } from './ladder.js'
import { latency } from './latency.js'
import { oneToOne } from './one-to-one.js'
import { personalAndGroup } from './personal-and-group.js'

/** @typedef {import('./contract.js').Scenario} Scenario */

/** In the order of `fleet run --list`. @type {readonly Scenario[]} */
export const SCENARIOS = Object.freeze([
  cometMillion,
  oneToOne,
  fan100,
  bigChannel,
  personalAndGroup,
  ladder,
  latency,
  churn,
  chaos,
])

/** The message is one line. */
export class UnknownScenarioError extends Error {}

/** @param {string} name @returns {Scenario} @throws {UnknownScenarioError} names the most similar scenario */
export function findScenario(name) {
  const found = SCENARIOS.find(scenario => scenario.name === name)
  if (found !== undefined) return found
  const names = SCENARIOS.map(scenario => scenario.name)
  throw new UnknownScenarioError(`unknown scenario "${name}"${didYouMean(name, names)} (--list shows all)`)
}
