// Removes the binaries of uWebSockets.js that this Node.js on this platform does not load: about 250 MB. Run it in
// images and on servers after the dependencies are installed, with the Node.js that will run Halley:
//
//   node scripts/prune-binaries.js                                     in a checkout
//   node node_modules/halley-gateway/scripts/prune-binaries.js         in a program that depends on Halley
//
//   --dry-run   says what would be removed
//
// After a change of the Node.js version, install the dependencies again. Without a binary for this Node.js, Halley uses
// node:http and ws and this script removes nothing; `npm ci --omit=optional` installs no binaries at all.

import { readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGE = 'uWebSockets.js'
/** Names of the binaries: platform, architecture, version of the ABI of Node.js. */
const BINARY = /^uws_[a-z0-9]+_[a-z0-9]+_\d+\.node$/

/**
 * @param {Pick<NodeJS.Process, 'platform' | 'arch' | 'versions'>} node
 * @returns {string} file name of the binary that this Node.js loads
 */
export const binaryOf = ({ platform, arch, versions }) => `uws_${platform}_${arch}_${versions.modules}.node`

/**
 * @param {string[]} names of files
 * @param {string} kept name of the binary to keep
 * @returns {string[]} names of the other binaries; none if the one to keep is not there
 */
export const superfluous = (names, kept) =>
  names.includes(kept) ? names.filter(name => BINARY.test(name) && name !== kept) : []

/**
 * @param {string} folder of the package
 * @param {{dryRun: boolean}} options
 * @returns {string} one line: what was removed, or why nothing was
 */
export function prune(folder, { dryRun }) {
  const kept = binaryOf(process)
  const names = readdirSync(folder)
  if (!names.includes(kept))
    return `nothing removed: ${PACKAGE} has no binary for this Node.js (${kept}); npm ci --omit=optional installs none`
  let bytes = 0
  const files = superfluous(names, kept).map(name => join(folder, name))
  for (const file of files) {
    bytes += statSync(file).size
    if (!dryRun) rmSync(file)
  }
  const verb = dryRun ? 'would remove' : 'removed'
  return `${verb} ${files.length} binaries of ${PACKAGE}, ${Math.round(bytes / 1e6)} MB; ${kept} stays`
}

/** @returns {string} folder of the package; '': it is not installed */
function packageFolder() {
  try {
    return dirname(createRequire(import.meta.url).resolve(PACKAGE))
  } catch {
    return ''
  }
}

const [, program, ...args] = process.argv
if (program !== undefined && realpathSync(program) === fileURLToPath(import.meta.url)) {
  const [flag, ...rest] = args
  if (rest.length > 0 || (flag !== undefined && flag !== '--dry-run')) {
    console.error('usage: node scripts/prune-binaries.js [--dry-run]')
    process.exitCode = 2
  } else {
    const folder = packageFolder()
    console.log(
      folder === ''
        ? `nothing removed: ${PACKAGE} is not installed`
        : prune(folder, { dryRun: flag === '--dry-run' }),
    )
  }
}
