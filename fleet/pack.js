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
  const [{ build }, { minify }] = await Promise.all([import('esbuild'), import('terser')]).catch(error => {
    throw new Error(
      `the drone cannot be packed without esbuild and terser (npm install esbuild terser): ${error.code ?? error.message}`,
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
  })
  // A few per cent less: what is sent to EC2 has to fit (see providers/ec2/user-data.js).
  const { code } = await minify(outputFiles[0].text, { module: true, ecma: 2020, compress: { passes: 3 } })
  return `// Halley ${version}: a load drone. node FILE --help\n${code}`
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
