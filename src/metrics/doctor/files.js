// Checks of file limits: each connection is a file.

import { checkMinimum, count, countOf, finding, unknown } from './finding.js'
import { DRONE_PROCESS, filesOfProcess, nofile, RESERVED_FILES, UNEVEN } from './recipes.js'

/** @import { Facts } from './facts.js' */
/** @import { Aim, Check } from './finding.js' */
/** @import { Role } from './recipes.js' */

/** Maximum processes per core; drone processes mostly wait. */
const MAX_PER_CORE = { server: 4, drone: 16 }

/** @param {number} limit files @param {number} processes @param {Role} role @returns {number} connections */
function connectionsFor(limit, processes, role) {
  const each = limit - Math.min(RESERVED_FILES, Math.floor(limit / 2))
  if (role === 'drone') return Math.min(each, DRONE_PROCESS) * processes
  return Math.floor((each * processes) / (processes > 1 ? UNEVEN : 1))
}

/** @param {Facts} facts @param {Aim} aim */
const maxProcesses = ({ cores }, { role, workers, fixed }) =>
  fixed ? workers : Math.max(workers, (cores ?? 1) * MAX_PER_CORE[role])

/** @param {number} limit @param {Facts} facts @param {Aim} aim @returns connections; null: no limit */
function connectionsWith(limit, facts, aim) {
  // A drone starts as many processes as it needs.
  if (!Number.isFinite(limit) || (aim.role === 'drone' && limit >= filesOfProcess(aim))) return null
  return connectionsFor(limit, maxProcesses(facts, aim), aim.role)
}

/** @param {number} limit @param {Facts} facts @param {Aim} aim @returns {number | null} null: too many */
function processesFor(limit, facts, aim) {
  const max = maxProcesses(facts, aim)
  for (let processes = aim.workers; processes <= max; processes++)
    if (connectionsFor(limit, processes, aim.role) >= aim.connections) return processes
  return null
}

/**
 * @param {Facts} facts @param {Aim} aim
 * @returns {{needed: number, holds: number | null}} needed: `aim.workers` if more do not help; holds: connections of
 *   `aim.workers`, null: unlimited files
 */
export function workersFor(facts, aim) {
  const hard = facts.files?.hard ?? Infinity
  if (!Number.isFinite(hard) || aim.role === 'drone') return { needed: aim.workers, holds: null }
  return {
    needed: processesFor(hard, facts, aim) ?? aim.workers,
    holds: connectionsFor(hard, aim.workers, aim.role),
  }
}

/** @param {Facts} facts @param {Aim} aim @returns {Check} */
function checkProcess(facts, aim) {
  const { connections, role, workers, fixed } = aim
  const drone = role === 'drone'
  const need = filesOfProcess(aim)
  const should = count(need)
  const share = drone
    ? `a drone process holds ${count(Math.min(connections, DRONE_PROCESS))} connections`
    : `${count(connections)} connections over ${countOf(workers, 'worker')}${workers === 1 ? '' : ', distributed unevenly by up to a tenth'}`
  const why = `${share}, and ${count(RESERVED_FILES)} other files; Node.js raises the soft limit to the hard one; a systemd service has its own limit (LimitNOFILE)`
  if (facts.files === null) return unknown('nofile', should, why)
  const { hard } = facts.files
  const is = count(hard)
  if (hard >= need) return finding('nofile', { is, should, why, reach: connectionsWith(hard, facts, aim) })
  const most = maxProcesses(facts, aim)
  const reach = connectionsFor(hard, most, role)
  const more = processesFor(hard, facts, aim)
  const noun = drone ? 'processes' : 'workers'
  if (more === null) {
    const tooFew = fixed ? '' : `; even ${count(most)} ${noun} are too few`
    return finding('nofile', { is, should, why: why + tooFew, reach, status: 'too low' })
  }
  const advice = drone
    ? `so a drone starts ${count(more)} ${noun}`
    : `start ${count(more)} ${noun} (\`workers: ${more}\`), or raise the limit`
  return finding('nofile', {
    is,
    should,
    why: `${why}; ${advice}`,
    reach,
    status: drone ? 'ok' : 'tight',
  })
}

/** Of one process; null: enough, or unknown. @param {Facts} facts @param {Aim} aim @returns {number | null} */
export const filesToAllow = (facts, aim) =>
  facts.files === null || facts.files.hard >= filesOfProcess(aim) ? null : nofile(aim)

/** @param {Facts} facts @param {Aim} aim @returns {Check[]} */
export function checkFiles(facts, aim) {
  const { connections, role } = aim
  const processes =
    role === 'drone' ? Math.max(aim.workers, Math.ceil(connections / DRONE_PROCESS)) : aim.workers
  // Above fs.nr_open, services do not start, and logins fail.
  const highest = filesToAllow(facts, aim) ?? filesOfProcess(aim)
  const open = facts.allFiles?.open ?? 0
  const others = open + processes * RESERVED_FILES
  const limit = facts.settings['fs.file-max']?.[0]
  // systemd sets the maximum.
  const is =
    limit === undefined ? undefined : `${limit > 1e15 ? 'no limit' : count(limit)} (${count(open)} open)`
  return [
    checkProcess(facts, aim),
    checkMinimum('fs.nr_open', facts, [highest], {
      why: 'maximum of the limit of a process',
      what: 'files of one process: the maximum of every limit',
      reach: ([most]) => connectionsWith(most, facts, aim),
    }),
    checkMinimum('fs.file-max', facts, [connections + others], {
      is: facts.allFiles === null ? undefined : is,
      why: `files of all processes: ${count(open)} open now, ${count(connections)} connections, and others`,
      what: 'files of all processes',
      reach: ([most]) => Math.max(0, most - others),
    }),
  ]
}
