// Memory of processes, as the kernel counts it.

import { readFileSync } from 'node:fs'

/**
 * @param {number} pid
 * @returns {number} MB of memory that the process has (RSS)
 */
export const memory = pid =>
  Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)?.[1] ?? 0) / 1024
