// Runs of the benchmarks, for their tests.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { unless } from '../kit/needs.js'

export const run = promisify(execFile)
export const script = fileURLToPath(new URL('../../bench/index.js', import.meta.url))
export const skip = unless(process.platform === 'linux', 'the benchmarks read /proc')

/** @param {string} text lines of JSON @returns {any[]} */
export const linesOf = text =>
  text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
