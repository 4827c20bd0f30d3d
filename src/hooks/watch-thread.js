// The thread of watch.js.

import { writeSync } from 'node:fs'
import { workerData } from 'node:worker_threads'

const LOOK_MS = 1000

/** @type {{fd: number, state: Int32Array, names: string[]}} */
const { fd, state, names } = workerData
let [lastHandler, lastCalls] = state
let told = ''

setInterval(() => {
  const [handler, calls] = [Atomics.load(state, 0), Atomics.load(state, 1)]
  const blocks = handler > 0 && handler === lastHandler && calls === lastCalls
  const name = blocks ? names[handler - 1] : ''
  lastHandler = handler
  lastCalls = calls
  if (name === told) return
  told = name
  writeSync(fd, `${JSON.stringify(name)}\n`)
}, LOOK_MS)
