// One controller for each folder: a file that names the process which has it.

import { randomUUID } from 'node:crypto'
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { handleOf, lives } from '../providers/processes.js'

const TRIES = 20

/** @param {string} dir */
const fileOf = dir => join(dir, 'controller.lock')

/**
 * @param {string} dir
 * @returns {Promise<number>} process id of the controller that lives; 0: none does
 */
export async function holder(dir) {
  const owner = await readFile(fileOf(dir), 'utf8').catch(() => '')
  return owner !== '' && (await lives(owner)) ? Number.parseInt(owner, 10) : 0
}

/**
 * @param {string} dir
 * @returns {Promise<() => Promise<void>>} what gives it back
 * @throws {Error} one line: another controller has it
 */
export async function takeLock(dir) {
  const own = await handleOf(process.pid)
  const file = fileOf(dir)
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, own, { flag: 'wx', mode: 0o600 })
  try {
    for (let i = 0; i < TRIES; i++) {
      // A link is made whole or not at all, and not over another one.
      const taken = await link(draft, file).then(
        () => true,
        error => {
          if (error.code === 'EEXIST') return false
          throw error
        },
      )
      if (taken) {
        return async () => {
          if ((await readFile(file, 'utf8').catch(() => '')) === own) await rm(file, { force: true })
        }
      }
      const owner = await readFile(file, 'utf8').catch(() => '')
      if (owner !== '' && (await lives(owner)))
        throw new Error(`another controller (process ${Number.parseInt(owner, 10)}) has ${dir}`)
      await clear(file, owner)
    }
    throw new Error(`${file} cannot be taken`)
  } finally {
    await rm(draft, { force: true })
  }
}

/**
 * Takes a dead one's lock away; not that of one who was quicker to do so, and has it now.
 * @param {string} file
 * @param {string} owner
 */
async function clear(file, owner) {
  const aside = `${file}.${randomUUID()}`
  try {
    await rename(file, aside)
  } catch {
    return
  }
  if ((await readFile(aside, 'utf8')) !== owner) await link(aside, file).catch(() => {})
  await rm(aside, { force: true })
}
