// Another program of the machine: makes the kernel's slab grow (files, their inodes and names), and fills sockets of
// its own.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const FILES = 10_000
const SOCKETS = 40
const EACH = 2 * 1024 * 1024

const folder = mkdtempSync(join(tmpdir(), 'halley-neighbour-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
process.once('disconnect', () => process.exit())

for (let i = 0; i < FILES; i++) {
  if (i % 1000 === 0) mkdirSync(join(folder, `${i / 1000}`))
  writeFileSync(join(folder, `${Math.floor(i / 1000)}`, `${i}`), '')
}
const server = createServer(socket => socket.on('error', () => {}).write(Buffer.alloc(EACH)))
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  let left = SOCKETS
  for (let i = 0; i < SOCKETS; i++) {
    const client = connect(port, '127.0.0.1', () => {
      client.pause()
      if (--left === 0) process.send?.('full')
    })
    client.on('error', () => {})
  }
})
