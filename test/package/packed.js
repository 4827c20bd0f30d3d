// The packed package, for its tests: packed once for each test file, from a copy, because packing writes types/.

import { cp, mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { testdir } from '../kit/folders.js'
import { run } from '../kit/programs.js'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const modules = join(root, 'node_modules')

/**
 * @typedef {object} Packed
 * @property {string} source the copy that was packed
 * @property {string} tarball its path
 * @property {number} size bytes of the tarball
 * @property {number} unpackedSize bytes
 * @property {{path: string, size: number, mode: number}[]} files
 * @property {any} manifest the repository's package.json
 */

/** @returns {Promise<Packed>} */
async function pack() {
  const folder = testdir(t)
  const source = join(folder, 'source')
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  for (const name of [...manifest.files, 'package.json', 'tsconfig.json', 'scripts'])
    if (name !== 'types' && !name.startsWith('!'))
      await cp(join(root, name), join(source, name), { recursive: true })
  await symlink(modules, join(source, 'node_modules'))
  const packing = await run(t, 'npm', ['pack', '--json', '--pack-destination', folder], { cwd: source })
  if (packing.code !== 0) throw new Error(packing.output)
  const [{ filename, size, unpackedSize, files }] = JSON.parse(packing.stdout)
  return { source, tarball: join(folder, filename), size, unpackedSize, files, manifest }
}

/** @type {Promise<Packed> | undefined} */
let packed

/** @returns {Promise<Packed>} the same one for all tests of a file */
export function packOnce() {
  packed ??= pack()
  return packed
}

/** Unpacks the package as a dependency of a program. @param {any} t @param {string} program folder */
export async function unpack(t, program) {
  const { tarball } = await packOnce()
  const target = join(program, 'node_modules/halley-gateway')
  await mkdir(target, { recursive: true })
  const { code, output } = await run(t, 'tar', ['-xzf', tarball, '--strip-components=1', '-C', target])
  if (code !== 0) throw new Error(output)
}

/** @param {string} program folder @param {string[]} names of packages of the repository that it gets */
export async function linkPackages(program, names) {
  for (const name of names) {
    const link = join(program, 'node_modules', name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(join(modules, name), link)
  }
}
