// Thread of watch.js (see there for the numbers).

import { writeSync } from 'node:fs'
import { workerData } from 'node:worker_threads'

/** @import { Blocks } from './watch.js' */

const LOOK_MS = 1000
const MAX_WAITS = 5

/** @type {{fd: number, state: Int32Array, names: string[]}} */
const { fd, state, names } = workerData
let [lastRunning, lastCalls, lastBeats] = state
let still = 0
let reported = ''

/** @returns {Blocks} */
function look() {
  const [running, calls, beats, ...promises] = state
  const same = running > 0 && running === lastRunning && calls === lastCalls
  still = beats === lastBeats ? still + 1 : 0
  lastRunning = running
  lastCalls = calls
  lastBeats = beats
  if (same) return { runs: names[running - 1], waits: [] }
  const waits = still > 1 ? names.filter((_, at) => promises[at] > 0).slice(0, MAX_WAITS) : []
  return { runs: '', waits }
}

setInterval(() => {
  const text = JSON.stringify(look())
  if (text === reported) return
  reported = text
  writeSync(fd, `${text}\n`)
}, LOOK_MS)
