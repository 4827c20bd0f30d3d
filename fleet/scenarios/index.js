import { UsageError } from '../../src/cli/args.js'
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
import { soak } from './soak.js'

/** @import { Scenario } from './contract.js' */

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
  soak,
])

/** @param {string} name @param {readonly Scenario[]} [scenarios] @throws {UsageError} names the most similar scenario */
export function findScenario(name, scenarios = SCENARIOS) {
  const found = scenarios.find(scenario => scenario.name === name)
  if (found !== undefined) return found
  const names = scenarios.map(scenario => scenario.name)
  throw new UsageError(`unknown scenario "${name}"${didYouMean(name, names)} (--list shows all)`)
}
