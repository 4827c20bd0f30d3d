// Removes the binaries of uWebSockets.js that this Node.js does not load: about 250 MB. Run it in images and on servers
// after the dependencies are installed:
//
//   node scripts/prune-binaries.js [--dry-run]                                 in a checkout
//   node node_modules/halley-gateway/scripts/prune-binaries.js [--dry-run]     in a program that depends on Halley
//
// After a change of the Node.js version, install the dependencies again. Without a binary for this Node.js it removes
// nothing; `npm ci --omit=optional` installs no binaries.

import { readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGE = 'uWebSockets.js'
const BINARY = /^uws_[a-z0-9]+_[a-z0-9]+_\d+\.node$/

/** @param {Pick<NodeJS.Process, 'platform' | 'arch' | 'versions'>} node */
export const binaryOf = ({ platform, arch, versions }) => `uws_${platform}_${arch}_${versions.modules}.node`

/** The other binaries; none without the one to keep. @param {string[]} names @param {string} kept */
export const superfluous = (names, kept) =>
  names.includes(kept) ? names.filter(name => BINARY.test(name) && name !== kept) : []

/** Returns one line about the removal. @param {string} folder @param {{dryRun: boolean}} options */
export function prune(folder, { dryRun }) {
  const kept = binaryOf(process)
  const names = readdirSync(folder)
  if (!names.includes(kept))
    return `nothing removed: ${PACKAGE} has no binary for this Node.js (${kept}); npm ci --omit=optional installs no binaries`
  let bytes = 0
  const files = superfluous(names, kept).map(name => join(folder, name))
  for (const file of files) {
    bytes += statSync(file).size
    if (!dryRun) rmSync(file)
  }
  const verb = dryRun ? 'would remove' : 'removed'
  return `${verb} ${files.length} binaries of ${PACKAGE}, ${Math.round(bytes / 1e6)} MB; ${kept} stays`
}

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
