// The view of a fleet on a terminal, fed by a test over a socket, which receives its commands.
// node status-program.js PORT '{"readOnly": ..., "ascii": ..., "noColor": ...}'

import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { detectCapabilities } from '../../dashboard/terminal/capabilities.js'
import { openView } from '../../fleet/status/index.js'

const { readOnly = false, ...flags } = JSON.parse(process.argv[3])
const { stdin, stdout, env } = process
const socket = connect(Number(process.argv[2]), '127.0.0.1')
/** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
const commands = new Map()

/** @type {import('../../fleet/status/index.js').Source} */
const source = {
  name: 'test.sock',
  start(listener) {
    const lines = createInterface({ input: socket })
    // readline re-emits errors of its input.
    for (const emitter of [socket, lines]) emitter.on('error', () => {})
    lines.on('line', line => {
      const { snapshot, lost, answer, error } = JSON.parse(line)
      if (snapshot !== undefined) listener({ type: 'snapshot', snapshot })
      else if (lost !== undefined) listener({ type: 'lost', reason: lost })
      else if (error === undefined) commands.get(answer)?.resolve({})
      else commands.get(answer)?.reject(new Error(error))
    })
    socket.write(`${JSON.stringify({ pid: process.pid })}\n`)
  },
  close: () => socket.destroy(),
}
if (!readOnly)
  source.command = (name, params) =>
    new Promise((resolve, reject) => {
      const ask = commands.size + 1
      commands.set(ask, { resolve, reject })
      socket.write(`${JSON.stringify({ ask, name, params })}\n`)
    })
const capabilities = detectCapabilities({ env, isTTY: stdout.isTTY, flags })
await openView({ source, stdin, stdout, capabilities })
stdout.write('the view has ended\n')
