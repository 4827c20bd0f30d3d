// The view of a fleet on a terminal, fed by a test over a socket, which is told what the view asks of the controller.
// node status-program.js PORT ['{"bare": true}'] ["{"ascii": true, "noColor": true}"]

import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { openView } from '../../fleet/status/index.js'

const { mute = false, ...flags } = JSON.parse(process.argv[3] ?? '{}')
const socket = connect(Number(process.argv[2]), '127.0.0.1')
/** @type {(snapshot: any) => void} */
let onSnapshot = () => {}
/** @type {(reason: string) => void} */
let onLost = () => {}
/** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
const asked = new Map()
let last = 0

/** @type {import('../../fleet/status/index.js').Source} */
const source = {
  name: 'test.sock',
  onSnapshot: listener => {
    onSnapshot = listener
  },
  onLost: listener => {
    onLost = listener
  },
  close: () => socket.destroy(),
}
if (!mute)
  source.command = (name, params) =>
    new Promise((resolve, reject) => {
      asked.set(++last, { resolve, reject })
      socket.write(`${JSON.stringify({ ask: last, name, params })}\n`)
    })

const lines = createInterface({ input: socket })
// The interface emits the errors of its input again.
for (const emitter of [socket, lines]) emitter.on('error', () => {})
lines.on('line', line => {
  const { snapshot, lost, answer, error } = JSON.parse(line)
  if (snapshot !== undefined) onSnapshot(snapshot)
  if (lost !== undefined) onLost(lost)
  if (answer !== undefined) {
    if (error === undefined) asked.get(answer)?.resolve({})
    else asked.get(answer)?.reject(new Error(error))
  }
})
socket.write(`${JSON.stringify({ pid: process.pid })}\n`)
const { stdin, stdout, env } = process
openView({ source, stdin, stdout: /** @type {any} */ (stdout), env, flags }).then(
  () => process.stdout.write('the view has ended\n'),
  error => {
    process.stdout.write(`the view has failed: ${error.message}\n`)
    process.exitCode = 1
  },
)
