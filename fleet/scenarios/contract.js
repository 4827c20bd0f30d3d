// A scenario is data for runner/: a published run, or one of ours. To add one, write a file and a row in
// scenarios/index.js; sizing.js scales a run to the machine, figures.js compares a result with published figures.
// May import: src/base/format.js and the files of this folder. Promises: planning has no side effect; `differs` names
// all differences from the published run.

/**
 * @import { FleetSettings } from '../schema.js'
 * @import { Figures } from '../runner/figures.js'
 * @typedef {{label: string, value: string, note?: string, ours: (result: any) => string}} Published a published figure;
 *   `value`: with its unit; `ours`: the same figure of a RunResult, '': unknown
 * @typedef {object} Step a part of a run with its own load; times in s
 * @property {string} name
 * @property {Partial<FleetSettings>} settings
 * @property {number} ramp until `n` is reached; 0: drones get `n` immediately, and open them at `rate`
 * @property {number} settle before the measurement
 * @property {number} seconds measured
 * @property {boolean} [across] connections use the last node of the run, messages the first one
 * @property {Disturbance[]} [disturbances]
 * @property {(work: Work) => Promise<Figures>} [work] runs during the load, and ends the measurement
 * @typedef {{servers: any, fleet: any, seconds: number, progress: (text: string) => void, note: (text: string) =>
 *   void}} Work `servers`: Servers (runner/servers.js); `fleet`: Fleet (controller/fleet.js); `note`: for the report
 * @typedef {object} Disturbance
 * @property {number} at s from the beginning of the measurement
 * @property {'kill-worker' | 'freeze-worker' | 'restart-workers' | 'reload' | 'restart-gateway' | 'kill-gateway' |
 *   'cut' | 'leave' | 'stop-redis' | 'kill-redis' | 'start-redis' | 'cut-redis'} kind `freeze-worker`: SIGSTOP, until
 *   the gateway replaces it; `restart-workers`: a rolling restart; `reload`: of a key that needs new workers;
 *   `restart-gateway`: SIGTERM, with a snapshot; `kill-gateway`: SIGKILL of its primary; `cut`: connections are reset;
 *   `leave`: connections are not reopened; `kill-redis`: SIGKILL; `cut-redis`: Redis closes all its connections
 * @property {number} [share] of the connections, for `cut` and `leave`
 * @property {number} [over] s, for `leave`; default: 0
 * @typedef {object} GatewayPlan the gateway of a run without a target
 * @property {number} workers
 * @property {object} config as in a configuration file; the runner adds address, port, key and stats
 * @property {string[]} [nodeFlags] of Node.js; default: those of `npm start`
 * @property {boolean} [redis] the engine is Redis, which the run starts
 * @property {number} [nodes] gateways that share the Redis; default: 1
 * @property {boolean} [snapshot] the memory engine keeps its channels after a clean exit
 * @typedef {object} RunPlan
 * @property {number} drones
 * @property {GatewayPlan} gateway
 * @property {Step[]} steps
 * @property {{connections: number, text: string}} size most connections, and the load in words
 * @property {string[]} differs differences from the published run, in sentences
 * @property {(setup: Setup) => Promise<Extra>} [setup] starts servers for the gateway
 * @property {boolean} [hasOverrides] the plan applies a given `n`
 * @typedef {{folder: string, teardown: (end: () => unknown) => void}} Setup `teardown`: called in reverse order after the
 *   gateway exits
 * @typedef {{config?: object, cpu?: Record<string, () => number>}} Extra blocks of the gateway's configuration, and CPU
 *   time in s, by name
 * @typedef {Record<'name' | 'summary' | 'source' | 'machine' | 'load' | 'scaled', string> & ScenarioParts} Scenario
 *   `summary`: one line; `source`: publisher, '': our own run; `machine`: of the published run; `load`: in words, at
 *   full scale; `scaled`: what `--scale` changes
 * @typedef {object} ScenarioParts
 * @property {(options: PlanOptions) => RunPlan} plan
 * @property {Published[]} published
 * @property {readonly string[]} [variants] gateways to compare, in turn
 * @property {(steps: any[]) => Figures} [figures] derived from all StepResults; shown with the last step
 * @property {readonly string[]} [zeros] figures that are 0 in a successful run
 * @property {boolean} [table] figures are also printed for a single run
 * @typedef {object} PlanOptions
 * @property {number} scale of the published load
 * @property {number} cores of this machine
 * @property {number} files open-files limit of a process
 * @property {boolean} target the run loads an existing server: no gateway to plan
 * @property {boolean} local the drones run on this machine
 * @property {number} [seconds] of each step, if given
 * @property {boolean} [redis] the engine of the gateway is Redis
 * @property {string} [variant]
 * @property {Partial<FleetSettings>} [overrides] given settings
 */

export {}
