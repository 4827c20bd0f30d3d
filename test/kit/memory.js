import { readFileSync } from 'node:fs'

/** @param {number} pid @returns {number} resident memory (RSS), MB */
export const memory = pid =>
  Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)?.[1] ?? 0) / 1024
