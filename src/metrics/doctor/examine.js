// All checks: a pure function from facts to findings.

import { workersFor as defaultWorkers } from '../control-groups.js'
import { checkFiles, filesToAllow, workersFor } from './files.js'
import { count, finding } from './finding.js'
import { checkMemory, checkProcessors } from './machine.js'
import { checkNetwork } from './network.js'
import { limitsFile, nofile, RATE, serviceFile, sysctlFile } from './recipes.js'

/** @import { Facts } from './facts.js' */
/** @import { Aim, Check, Finding } from './finding.js' */

export const CONNECTIONS = 100_000

/**
 * @typedef {object} DoctorOptions
 * @property {number} [connections] default CONNECTIONS
 * @property {import('./recipes.js').Role} [role] default: server
 * @property {number} [rate] connections a second
 * @property {number} [workers] default: a gateway's default
 * @property {number} [addresses] of a drone; default: the machine's
 * @property {number} [deliveries] a second, to all connections (server) or received (drone)
 *
 * @typedef {object} Diagnosis
 * @property {Aim} aim
 * @property {Finding[]} findings
 * @property {number | null} largest connections now; null: no known limit
 * @property {{needed: number, holds: number | null, most: number}} workerCounts needed: for the goal; holds:
 *   connections of `aim.workers`, null: unlimited files; most: needed for `largest`
 * @property {string[]} obstacles ids of findings that prevent the goal
 * @property {string[]} notes limits of this environment
 * @property {number | null} nofile for limits.d and systemd; null: enough
 * @property {number | null} allowedNow files of a process; Infinity: no limit; null: unknown
 */

/** @param {Facts} facts @param {DoctorOptions} wanted @returns {Aim} */
const aimOf = (
  facts,
  { connections = CONNECTIONS, role = 'server', rate = RATE, workers, addresses, deliveries = 0 },
) => ({
  connections,
  role,
  rate,
  workers: workers ?? defaultWorkers(facts.cores ?? 1, facts.quota),
  fixed: workers !== undefined,
  addresses: addresses ?? null,
  deliveries,
})

/** @param {Facts} facts @param {Aim} aim @returns {Check[]} */
function checkSocketServer({ uws = null }, { role }) {
  if (uws === null || role !== 'server') return []
  const loads = { is: 'loads', why: 'the socket server uws; without it, the slower node' }
  const fails = { is: 'does not load', why: `the gateway uses the slower node: ${uws}` }
  const status = uws === '' ? 'ok' : 'tight'
  return [finding('uWebSockets.js', { ...(uws === '' ? loads : fails), should: 'loads', status })]
}

/** @type {Record<Finding['group'], (facts: Facts, aim: Aim) => Check[]>} */
const CHECKS = {
  files: checkFiles,
  network: checkNetwork,
  memory: checkMemory,
  processor: checkProcessors,
  sockets: checkSocketServer,
}

/** @param {Facts} facts @param {DoctorOptions} wanted @returns {Finding[]} */
export function examine(facts, wanted) {
  const aim = aimOf(facts, wanted)
  return Object.entries(CHECKS).flatMap(([group, checks]) =>
    checks(facts, aim).map(check => {
      const low = check.reach !== null && check.reach < aim.connections && check.status !== 'cannot tell'
      return /** @type {Finding} */ ({ ...check, group, status: low ? 'too low' : check.status })
    }),
  )
}

/** @param {Facts} facts @returns {string[]} */
function notesOf({ container, readOnly }) {
  const notes = []
  if (container !== null)
    notes.push(
      `this looks like a container (${container}): fs.*, tcp_mem, netdev_max_backlog and nf_conntrack are the host's; other net.* settings and open files are set when it is started (docker run --sysctl KEY=VALUE --ulimit nofile=N:N)`,
    )
  if (readOnly) notes.push('/proc/sys is read-only here: run sysctl on the host')
  return notes
}

/** @param {Facts} facts @param {DoctorOptions} wanted @returns {Diagnosis} */
export function diagnose(facts, wanted) {
  const aim = aimOf(facts, wanted)
  const findings = examine(facts, wanted)
  const reaches = findings
    .filter(({ status }) => status !== 'cannot tell')
    .map(({ reach }) => reach ?? Number.POSITIVE_INFINITY)
  const lowest = Math.min(...reaches)
  const largest = Number.isFinite(lowest) ? lowest : null
  return {
    aim,
    findings,
    largest,
    workerCounts: {
      ...workersFor(facts, aim),
      most: workersFor(facts, { ...aim, connections: largest ?? aim.connections }).needed,
    },
    obstacles: findings.filter(({ status }) => status === 'too low').map(({ id }) => id),
    notes: notesOf(facts),
    nofile: filesToAllow(facts, aim),
    allowedNow: facts.files?.hard ?? null,
  }
}

/**
 * @param {Diagnosis} diagnosis
 * @param {{all?: boolean, keep?: string[]}} [options] include all settings, or these
 * @returns {{sysctl: string | null, limits: string | null, service: string | null}} texts; null: no change needed
 */
export function filesOf({ aim, findings, nofile: files, allowedNow }, { all = false, keep = [] } = {}) {
  const settings = findings
    .filter(({ changes, status, id }) => status !== 'cannot tell' && (all || changes || keep.includes(id)))
    .flatMap(({ setting }) => setting ?? [])
  // Writing a limit would lower it.
  const allowed =
    files ?? (all && allowedNow !== Number.POSITIVE_INFINITY ? Math.max(nofile(aim), allowedNow ?? 0) : null)
  const heading = `halley doctor: ${count(aim.connections)} connections, role ${aim.role}\nLoaded by: sysctl --system`
  return {
    sysctl: settings.length > 0 ? sysctlFile(settings, { heading }) : null,
    limits: allowed === null ? null : limitsFile(allowed),
    service: allowed === null ? null : serviceFile(allowed),
  }
}
