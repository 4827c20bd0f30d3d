// Figures of processes from Linux's /proc.

import { readdirSync, readFileSync } from 'node:fs'

/** Unit of /proc/PID/stat: USER_HZ, which is part of the kernel's interface. */
const TICKS_PER_SECOND = 100

/** @param {string} path @returns {string} '': the process has ended, or the kernel has no such file */
function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** @param {number} pid @returns {string[]} ids of its threads */
function threads(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** @param {number} pid @returns {number[]} the process and its descendants */
export function processTree(pid) {
  const children = threads(pid).flatMap(thread =>
    read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(processTree)]
}

/**
 * @param {number} pid @param {string} file in the command line
 * @returns {number} pid of a descendant, 0: there is none
 */
export const descendantRunning = (pid, file) =>
  processTree(pid).find(process => read(`/proc/${process}/cmdline`).includes(file)) ?? 0

/**
 * @param {number} pid
 * @returns {number} bytes of user space of the process tree: proportional set size, which counts shared pages once
 */
export function memoryOf(pid) {
  let bytes = 0
  for (const process of processTree(pid)) {
    const line = /^Pss:\s+(\d+) kB/m.exec(read(`/proc/${process}/smaps_rollup`))
    if (line) bytes += Number(line[1]) * 1024
  }
  return bytes
}

/** @param {number} pid @returns {number} resident bytes of one process, shared pages included */
export function rssOf(pid) {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`))
  return line === null ? 0 : Number(line[1]) * 1024
}

/** @param {number} pid @returns {number} seconds of processor time of the process tree, user and system */
export function cpuOf(pid) {
  return processTree(pid).reduce((sum, process) => sum + cpuOfProcess(process), 0)
}

/** @param {number} pid @returns {number} s */
function cpuOfProcess(pid) {
  // The scheduler's own count is exact to the nanosecond, but not every kernel keeps it.
  const exact = threads(pid).map(thread => read(`/proc/${pid}/task/${thread}/schedstat`))
  if (exact.length > 0 && exact[0] !== '')
    return exact.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0) / 1e9
  // After the name in parentheses: the fields from `state` on; the 12th and 13th are utime and stime.
  const stat = read(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return stat === '' ? 0 : (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** @returns {number} open files that a child process may have (Node.js raises its limit to the hard one) */
export function openFilesLimit() {
  const line = /^Max open files\s+(\d+|unlimited)/m.exec(read('/proc/self/limits'))
  return line === null || line[1] === 'unlimited' ? 1_048_576 : Number(line[1])
}
