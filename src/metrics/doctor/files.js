// Checks of file limits: each connection is a file.

import { checkMinimum, count, finding } from './finding.js'
import { DRONE_PROCESS, filesOfProcess, nofile, RESERVED_FILES, UNEVEN } from './recipes.js'

/** @import { Facts } from './facts.js' */
/** @import { Aim, Finding } from './finding.js' */

/** Maximum sensible processes per core; those of a drone mostly wait. */
const MAX_PER_CORE = { server: 4, drone: 16 }

/**
 * @param {number} limit files of one process
 * @param {number} processes @param {import('./recipes.js').Role} role @returns {number} connections
 */
function connectionsFor(limit, processes, role) {
  const each = limit - Math.min(RESERVED_FILES, Math.floor(limit / 2))
  if (role === 'drone') return Math.min(each, DRONE_PROCESS) * processes
  return Math.floor((each * processes) / (processes > 1 ? UNEVEN : 1))
}

/** @param {Facts} facts @param {Aim} aim @returns {number} */
const maxProcesses = ({ cores }, { role, workers, fixed }) =>
  fixed ? workers : Math.max(workers, (cores ?? 1) * MAX_PER_CORE[role])

/** @param {number} limit @param {Facts} facts @param {Aim} aim @returns {number | null} connections; null: no limit */
function connectionsWith(limit, facts, aim) {
  if (!Number.isFinite(limit)) return null
  // A drone starts as many processes as it needs, so files do not limit it.
  return aim.role === 'drone' && limit >= filesOfProcess(aim)
    ? null
    : connectionsFor(limit, maxProcesses(facts, aim), aim.role)
}

/**
 * @param {number} limit @param {Facts} facts @param {Aim} aim
 * @returns {number | null} processes needed with this limit; null if more than sensible
 */
function processesFor(limit, facts, aim) {
  const max = maxProcesses(facts, aim)
  for (let processes = aim.workers; processes <= max; processes++)
    if (connectionsFor(limit, processes, aim.role) >= aim.connections) return processes
  return null
}

/**
 * @param {Facts} facts @param {Aim} aim
 * @returns {{needed: number, holds: number | null}} needed: workers that hold the connections, `aim.workers` if more
 *   of them do not help; holds: connections of `aim.workers`, null if open files are no limit
 */
export function workersFor(facts, aim) {
  const hard = facts.files?.hard ?? Number.POSITIVE_INFINITY
  if (!Number.isFinite(hard) || aim.role === 'drone') return { needed: aim.workers, holds: null }
  return {
    needed: processesFor(hard, facts, aim) ?? aim.workers,
    holds: connectionsFor(hard, aim.workers, aim.role),
  }
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding} */
function checkProcess(facts, aim) {
  const { connections, role, workers } = aim
  const need = filesOfProcess(aim)
  const word = role === 'drone' ? 'processes' : 'workers'
  const share =
    role === 'drone'
      ? `a drone process holds ${count(Math.min(connections, DRONE_PROCESS))} connections`
      : `${count(connections)} connections over ${count(workers)} ${workers === 1 ? 'worker' : 'workers, distributed unevenly by up to a tenth'}`
  const why = `${share}, and ${count(RESERVED_FILES)} other files; Node.js raises the soft limit to the hard one; a systemd service has its own limit (LimitNOFILE)`
  if (facts.files === null)
    return finding('files', 'nofile', { should: count(need), why, status: 'cannot tell' })
  const { hard } = facts.files
  const is = count(hard)
  if (hard >= need)
    return finding('files', 'nofile', {
      is,
      should: count(need),
      why,
      reach: connectionsWith(hard, facts, aim),
    })
  const reach = connectionsFor(hard, maxProcesses(facts, aim), role)
  const more = processesFor(hard, facts, aim)
  if (more === null) {
    const tooFew = `even ${count(maxProcesses(facts, aim))} ${word} are too few`
    const all = aim.fixed ? why : `${why}; ${tooFew}`
    return finding('files', 'nofile', { is, should: count(need), why: all, reach, status: 'too low' })
  }
  const advice =
    role === 'drone'
      ? `so a drone starts ${count(more)} ${word}`
      : `start ${count(more)} ${word} (\`workers: ${more}\`), or raise the limit`
  return finding('files', 'nofile', {
    is,
    should: count(need),
    why: `${why}; ${advice}`,
    reach,
    status: role === 'drone' ? 'ok' : 'tight',
  })
}

/**
 * @param {Facts} facts @param {Aim} aim
 * @returns {number | null} files of one process, for limits.d and systemd; null: enough already, or unknown
 */
export function filesToAllow(facts, aim) {
  const need = nofile(aim)
  return facts.files === null || facts.files.hard >= filesOfProcess(aim) ? null : need
}

/** @param {Facts} facts @param {Aim} aim @returns {Finding[]} */
export function checkFiles(facts, aim) {
  const { connections, role } = aim
  const processes =
    role === 'drone' ? Math.max(aim.workers, Math.ceil(connections / DRONE_PROCESS)) : aim.workers
  // Limits of a process must not exceed fs.nr_open: services would not start, and logins would fail.
  const highest = filesToAllow(facts, aim) ?? filesOfProcess(aim)
  const ofKernel = checkMinimum('files', 'fs.nr_open', facts, [highest], {
    why: 'maximum of the limit of a process',
    what: 'files of one process: the maximum of every limit',
    reach: ([limit]) => connectionsWith(limit, facts, aim),
  })
  const open = facts.allFiles?.open ?? 0
  const others = open + processes * RESERVED_FILES
  const all = checkMinimum('files', 'fs.file-max', facts, [connections + others], {
    is: facts.allFiles === null ? undefined : fileMaxText(facts, open),
    why: `files of all processes: ${count(open)} open now, ${count(connections)} connections, and others`,
    what: 'files of all processes',
    reach: ([limit]) => Math.max(0, limit - others),
  })
  return [checkProcess(facts, aim), ofKernel, all]
}

/** @param {Facts} facts @param {number} open files of all processes now @returns {string | undefined} `fs.file-max` */
function fileMaxText({ settings }, open) {
  const limit = settings['fs.file-max']?.[0]
  if (limit === undefined) return undefined
  // systemd sets the largest possible number.
  return `${limit > 1e15 ? 'no limit' : count(limit)} (${count(open)} open)`
}
