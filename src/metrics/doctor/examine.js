// All checks: a pure function from facts to findings.

import { workersFor as defaultWorkers } from '../control-groups.js'
import { checkFiles, filesToAllow, workersFor } from './files.js'
import { count, finding } from './finding.js'
import { checkMachine } from './machine.js'
import { checkNetwork } from './network.js'
import { limitsFile, nofile, RATE, serviceFile, sysctlFile } from './recipes.js'

/** @import { Facts } from './facts.js' */
/** @import { Aim, Finding } from './finding.js' */

export const CONNECTIONS = 100_000

/**
 * @typedef {object} DoctorOptions
 * @property {number} [connections] default CONNECTIONS
 * @property {import('./recipes.js').Role} [role] default: server
 * @property {number} [rate] new connections a second
 * @property {number} [workers] default: those that a gateway would start here
 * @property {number} [addresses] source addresses of a drone; default: those of the machine
 * @property {number} [deliveries] messages a second, to all connections (server) or received by them (drone)
 *
 * @typedef {object} Diagnosis
 * @property {Aim} aim
 * @property {Finding[]} findings
 * @property {number | null} largest maximum connections now; null: no known limit
 * @property {{needed: number, holds: number | null, most: number}} workerCounts needed: for the wanted number; holds:
 *   connections of `aim.workers`, null if open files are no limit; most: needed for `largest`
 * @property {string[]} obstacles ids of findings that prevent the wanted number
 * @property {string[]} notes what cannot be changed from here
 * @property {number | null} nofile for limits.d and systemd; null: enough already
 * @property {number | null} allowedNow files of a process; Infinity: no limit; null: unknown
 */

/** @param {Facts} facts @param {DoctorOptions} asked @returns {Aim} */
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

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
function checkSocketServer({ uws = null }, { role }) {
  if (uws === null || role !== 'server') return []
  const is = uws === '' ? 'loads' : 'does not load'
  const why =
    uws === ''
      ? 'the socket server uws; without it, the slower node'
      : `the gateway uses the slower node: ${uws}`
  return [
    finding('sockets', 'uWebSockets.js', { is, should: 'loads', why, status: uws === '' ? 'ok' : 'tight' }),
  ]
}

/** @param {Facts} facts @param {DoctorOptions} asked @returns {Finding[]} */
export function examine(facts, asked) {
  const aim = aimOf(facts, asked)
  const findings = [...checkFiles(facts, aim), ...checkNetwork(facts, aim), ...checkMachine(facts, aim)]
  return [...findings, ...checkSocketServer(facts, aim)].map(found => {
    const low = found.reach !== null && found.reach < aim.connections && found.status !== 'cannot tell'
    return low ? { ...found, status: /** @type {const} */ ('too low') } : found
  })
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

/** @param {Facts} facts @param {DoctorOptions} asked @returns {Diagnosis} */
export function diagnose(facts, asked) {
  const aim = aimOf(facts, asked)
  const findings = examine(facts, asked)
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
 * @param {{all?: boolean, keep?: string[]}} [options] all: include settings that are right already; keep: include
 *   these settings
 * @returns {{sysctl: string | null, limits: string | null, service: string | null}} texts of files; null: no change
 *   needed
 */
export function filesOf({ aim, findings, nofile: files, allowedNow }, { all = false, keep = [] } = {}) {
  const settings = findings
    .filter(({ changes, status, id }) => status !== 'cannot tell' && (all || changes || keep.includes(id)))
    .flatMap(({ setting }) => setting ?? [])
  // No limit: writing one would lower it.
  const allowed =
    files ?? (all && allowedNow !== Number.POSITIVE_INFINITY ? Math.max(nofile(aim), allowedNow ?? 0) : null)
  const heading = `halley doctor: ${count(aim.connections)} connections, role ${aim.role}\nLoaded by: sysctl --system`
  return {
    sysctl: settings.length > 0 ? sysctlFile(settings, { heading }) : null,
    limits: allowed === null ? null : limitsFile(allowed),
    service: allowed === null ? null : serviceFile(allowed),
  }
}
