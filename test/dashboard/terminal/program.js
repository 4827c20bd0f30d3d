// A program on a terminal that runs commands of a test, received over a socket, and reports keys and sizes.
// node program.js PORT '{"ascii": ..., "noColor": ..., "bare": ..., "suspendable": ...}'

import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { detectCapabilities } from '../../../dashboard/terminal/capabilities.js'
import { Terminal } from '../../../dashboard/terminal/terminal.js'

const { bare = false, suspendable = true, ...flags } = JSON.parse(process.argv[3] ?? '{}')
const socket = connect(Number(process.argv[2]), '127.0.0.1')
const capabilities = detectCapabilities({ env: process.env, isTTY: process.stdout.isTTY, flags })
const terminal = new Terminal({ input: process.stdin, output: process.stdout, capabilities, suspendable })

/** @param {object} message */
const send = message => socket.write(`${JSON.stringify(message)}\n`)

let flood = 0

/** Draws as fast as it can. */
function drawOn() {
  if (flood === 0) return
  terminal.draw(Array.from({ length: 24 }, (_, row) => [[`${flood} ${row} `.repeat(20), '']]))
  if (++flood % 1000 === 0) send({ flood })
  setImmediate(drawOn)
}

/** @type {Record<string, (argument: any) => void>} */
const commands = {
  open: () => terminal.open(),
  draw: lines => {
    terminal.draw(lines)
    send({ drawn: lines.length })
  },
  redraw: () => terminal.redraw(),
  flood: () => {
    flood = 1
    drawOn()
  },
  last: lines => {
    flood = 0
    terminal.draw(lines)
  },
  throw: () => {
    throw new Error('as the test wants it')
  },
  end: () => {
    terminal.close()
    terminal.close()
    // Only the socket keeps the process alive.
    socket.unref()
  },
  exit: () => {
    terminal.close()
    process.exit(3)
  },
}

terminal.onKey = key => send({ key })
terminal.onResize = size => send({ size })
terminal.onEnd = () => process.exit(0)
if (!bare) {
  const leave = () => {
    terminal.close()
    process.exit(1)
  }
  process.on('uncaughtException', leave)
  process.on('SIGTERM', leave)
}
const lines = createInterface({ input: socket })
// readline re-emits errors of its input.
for (const emitter of [socket, lines]) emitter.on('error', () => {})
lines.on('line', line => {
  for (const [name, argument] of Object.entries(JSON.parse(line))) commands[name](argument)
})
terminal.open()
send({ pid: process.pid, size: terminal.size, capabilities })
