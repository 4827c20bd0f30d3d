// The drone as one file, which runs on bare Node.

import { randomBytes } from 'node:crypto'
import { rename, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { packageVersion } from '../src/version.js'

const ENTRY = fileURLToPath(new URL('./drone/main.js', import.meta.url))

/**
 * @returns {Promise<string>} an ES module that imports nothing but what Node has
 * @throws {Error} with one line: there is no esbuild here
 */
export async function packDrone() {
  const { build } = await import('esbuild').catch(error => {
    throw new Error(
      `the drone cannot be packed without esbuild (npm install esbuild): ${error.code ?? error.message}`,
    )
  })
  const version = packageVersion()
  const { outputFiles } = await build({
    entryPoints: [ENTRY],
    bundle: true,
    minify: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    legalComments: 'none',
    logLevel: 'silent',
    define: { 'globalThis.HALLEY_VERSION': JSON.stringify(version) },
    banner: { js: `// Halley ${version}: a load drone` },
  })
  return outputFiles[0].text
}

/**
 * @param {string} file is there whole or not at all
 * @returns {Promise<void>}
 */
export async function writeDrone(file) {
  const text = await packDrone()
  const part = `${file}.${randomBytes(4).toString('hex')}`
  try {
    await writeFile(part, text, { mode: 0o644 })
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}
