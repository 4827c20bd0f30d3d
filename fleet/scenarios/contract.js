// A scenario repeats a published run or a run of our own: data that runner/ executes. A new one is a file and a row in
// scenarios/index.js; sizing.js scales a run to the machine, figures.js compares a result with published figures.
// May import: src/base/format.js and the files of this folder; nothing that starts anything.
// Promises: planning has no side effect; `differs` says all that differs from the published run.

/**
 * @typedef {import('../schema.js').FleetSettings} FleetSettings
 * @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot
 */

/**
 * A figure of the published run, beside which ours is put.
 * @typedef {object} Published
 * @property {string} label
 * @property {string} value as it was published, with its unit
 * @property {string} [note]
 * @property {(result: any) => string} ours the same figure of a RunResult, or '' where it cannot be said
 * @typedef {object} Step a stretch of a run with a load of its own
 * @property {string} name
 * @property {Partial<FleetSettings>} settings
 * @property {number} ramp s over which `n` is reached; 0: the drones get all of `n` at once, and open them at `rate`
 * @property {number} settle s before it is measured
 * @property {number} seconds that are measured
 * @property {boolean} [across] connections go to the last node of the run, messages to the first one
 * @property {Disturbance[]} [disturbances]
 * @typedef {object} Disturbance what happens while it is measured
 * @property {number} at s from the beginning of the measurement
 * @property {'kill-worker' | 'freeze-worker' | 'restart-workers' | 'reload' | 'restart-gateway' | 'kill-gateway' |
 *   'cut' | 'leave' | 'stop-redis' | 'kill-redis' | 'start-redis'} kind `freeze-worker`: SIGSTOP, until the gateway has replaced it;
 *   `restart-workers`: a rolling restart; `reload`: of a key that takes new workers; `restart-gateway`: SIGTERM and a
 *   new start, with a snapshot; `kill-gateway`: SIGKILL of its primary, and a new start; `cut`: by the network;
 *   `leave`: for good; `kill-redis`: SIGKILL
 * @property {number} [share] of the connections, for `cut` and `leave`
 * @property {number} [over] s, for `leave`; left out: at once
 * @typedef {object} GatewayPlan the gateway that a run starts when it has no target
 * @property {number} workers
 * @property {object} config as in a configuration file; the runner adds address, port, key and what watching needs
 * @property {string[]} [nodeFlags] of Node.js; left out: those of `npm start`
 * @property {boolean} [redis] starts a Redis, and uses it as the engine
 * @property {number} [nodes] gateways that share the Redis; left out: one
 * @property {boolean} [snapshot] the memory engine keeps its channels over a clean end
 * @typedef {object} RunPlan
 * @property {number} drones
 * @property {GatewayPlan} gateway
 * @property {Step[]} steps
 * @property {{connections: number, text: string}} size what the run holds at most, and in words all that it does
 * @property {string[]} differs what differs from the published run, in sentences
 * @typedef {object} Scenario
 * @property {string} name
 * @property {string} summary one line
 * @property {string} source who published it
 * @property {string} machine that it ran on
 * @property {string} load in words, at full scale
 * @property {string} scaled what `--scale` makes smaller, and what it leaves as it is
 * @property {(options: PlanOptions) => RunPlan} plan
 * @property {Published[]} published empty: nobody published such a run
 * @typedef {object} PlanOptions
 * @property {number} scale of what was published; 1: all of it
 * @property {number} cores of this machine
 * @property {number} files that one process may open here
 * @property {boolean} target whether somebody else's server is loaded, so that there is no gateway to plan
 * @property {boolean} local whether the drones run on this machine
 * @property {number} [seconds] that each step is measured, where somebody wants it otherwise
 * @property {boolean} [redis] whether the gateway's engine is to be Redis
 */

export {}
