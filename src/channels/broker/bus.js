import { Socket } from 'node:net'

/** Descriptor of the bus, opened by the primary. */
const BUS_FD = 4
const BUS_READ_SIZE = 256 * 1024

/** Opens the bus to the primary's broker. Reads share one buffer, which saves an allocation per read. */
export function openBus() {
  const read = { handle: (/** @type {Buffer} */ _chunk) => {} }
  const buffer = Buffer.allocUnsafeSlow(BUS_READ_SIZE)
  const socket = new Socket(
    /** @type {any} */ ({
      fd: BUS_FD,
      readable: true,
      writable: true,
      onread: {
        buffer,
        callback(/** @type {number} */ length) {
          read.handle(buffer.subarray(0, length))
          return true
        },
      },
    }),
  )
  return { socket, read }
}
