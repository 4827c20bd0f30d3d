// Measurements: our scenarios with a table of figures as result.

import { ownScenario } from '../fleet/scenarios/own.js'

/** @type {typeof ownScenario} */
export const measurement = ({ measure, ...scenario }) =>
  ownScenario({
    table: true,
    ...scenario,
    measure(options) {
      const { config, ...rest } = measure(options)
      const { client, ...blocks } = /** @type {any} */ (config ?? {})
      return { ...rest, config: { ...blocks, client: { insecure: true, ...client } } }
    },
  })
