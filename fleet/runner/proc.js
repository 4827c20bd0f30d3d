// Figures of processes from Linux's /proc.

import { readdirSync, readFileSync } from 'node:fs'

/** Unit of /proc/PID/stat: USER_HZ, part of the kernel's interface. */
const TICKS_PER_SECOND = 100

/** @param {string} path @returns {string} '': the process has exited, or no such file */
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

/** @param {number} pid @returns {string} its arguments, each followed by a NUL; '': it has exited */
export const commandOf = pid => read(`/proc/${pid}/cmdline`)

/** Bytes of user space of the process tree: proportional set size, with shared pages once. @param {number} pid */
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

/** @param {number} pid @returns {number} CPU seconds of the process tree, user and system */
export function cpuOf(pid) {
  return processTree(pid).reduce((sum, process) => sum + cpuOfProcess(process), 0)
}

/** @param {number} pid @returns {number} CPU seconds of one process */
export function cpuOfProcess(pid) {
  // The scheduler's counter is exact to 1 ns, but some kernels lack it.
  const exact = threads(pid).map(thread => read(`/proc/${pid}/task/${thread}/schedstat`))
  if (exact.length > 0 && exact[0] !== '')
    return exact.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0) / 1e9
  // The fields after the name in parentheses start with `state`; the 12th and 13th are utime and stime.
  const stat = read(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return stat === '' ? 0 : (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** @param {number} pid @param {NodeJS.Signals | 0} name @returns {boolean} false: no such process */
export function signal(pid, name) {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** @returns {number} open files of a process: the hard limit, to which Node.js raises its own */
export function openFilesLimit() {
  const [, limit = 1024] = /^Max open files\s+\S+\s+(\S+)/m.exec(read('/proc/self/limits')) ?? []
  return limit === 'unlimited' ? 1_048_576 : Number(limit)
}
