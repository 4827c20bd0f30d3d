// Scenarios without a published run.

import { connectionsText, dronesFor, gatewayFor, openingRate, scaled } from './sizing.js'

/** @import { GatewayPlan, PlanOptions, RunPlan, Scenario, Step } from './contract.js' */

/** Connections per second opened by drones on separate machines. */
const OPENED_PER_SECOND = 5000

/**
 * @typedef {Partial<GatewayPlan> & Pick<RunPlan, 'setup'>} Extras
 * @typedef {{steps: (Pick<Step, 'name' | 'settings'> & Partial<Step>)[], channels?: object, text?: string}} Measured
 *   `steps`: default no ramp, settle for 3 s, 8 s measured; `channels`: options without a namespace; `text`: the load
 */

/**
 * @param {Pick<Scenario, 'name' | 'summary'> & Partial<Scenario> & {clients: number, measure: (options: PlanOptions &
 *   {n: number, rate: number}) => Measured & Extras}} scenario `clients` at full scale; `rate`: connections per second
 * @returns {Scenario}
 */
export const ownScenario = ({ clients, measure, ...scenario }) => ({
  ...{ source: '', machine: '', load: scenario.summary, scaled: 'connections', published: [], ...scenario },
  plan(options) {
    const n = options.overrides?.n ?? scaled(clients, options.scale)
    const rate = openingRate(OPENED_PER_SECOND, options)
    const { steps, channels, setup, text, config, ...gateway } = measure({ ...options, n, rate })
    const max = Math.max(...steps.map(({ settings }) => settings.n ?? 0))
    return {
      drones: dronesFor(max, options),
      gateway: { ...gatewayFor(max, options, config, channels), ...gateway },
      size: { connections: max, text: text ?? connectionsText(max) },
      steps: steps.map(step => ({ ramp: 0, settle: 3, seconds: options.seconds ?? 8, ...step })),
      differs: [],
      setup,
      hasOverrides: true,
    }
  },
})
