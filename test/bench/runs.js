// Runs of the benchmarks, for their tests.

import { fileURLToPath } from 'node:url'
import { unless } from '../kit/needs.js'

export const script = fileURLToPath(new URL('../../bench/index.js', import.meta.url))
export const skip = unless(process.platform === 'linux', 'the benchmarks read /proc')

/** @param {string} text lines of JSON @returns {any[]} */
export const linesOf = text =>
  text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
