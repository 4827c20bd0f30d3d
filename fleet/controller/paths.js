// The folder of a fleet, and what is in it.

import { join } from 'node:path'

/** What the kernel takes for the path of a Unix socket, with its end. */
const LONGEST = 107

/**
 * @param {string} dir
 * @returns {string} of the controller's Unix socket
 * @throws {Error} one line
 */
export function socketPath(dir) {
  const path = join(dir, 'control.sock')
  if (Buffer.byteLength(path) > LONGEST)
    throw new Error(`${dir}: this path is too long for the controller's socket; use a shorter --dir`)
  return path
}

/** @param {string} dir */
export const logPath = dir => join(dir, 'controller.log')
