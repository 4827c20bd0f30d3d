// What tests of the whole program share.

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Tmux } from '../kit/tmux.js'
import { MockGateway, recentSnapshots } from './mock-gateway.js'

export const BIN = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))

/** @param {import('tap').Test} t */
export async function folder(t) {
  const folder = await mkdtemp(join(tmpdir(), 'halley-test-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/**
 * @param {import('tap').Test} t
 * @param {any} [options]
 * @param {string} [path]
 */
export async function mock(t, options = {}, path = '') {
  const snapshots = recentSnapshots({ workers: 2, seconds: 60, connections: 20_000, csv: true, ...options })
  const gateway = await new MockGateway(path || join(await folder(t), 's.sock'), snapshots).listen()
  t.teardown(() => gateway.close())
  return Object.assign(gateway.beat(), { snapshots })
}

/**
 * A terminal with a shell in which the dashboard runs.
 * @param {import('tap').Test} t
 * @param {string} args
 * @param {Parameters<typeof Tmux.start>[1]} [place]
 */
export async function open(t, args, place = {}) {
  const terminal = await Tmux.shell(t, place)
  await terminal.tmux.enter(`${process.execPath} ${BIN} dashboard ${args}; echo exit $?`)
  return terminal
}

/**
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 * @returns {Promise<{code: number, out: string, err: string}>}
 */
export const run = (args, env = {}) =>
  new Promise(resolve => {
    execFile(
      process.execPath,
      [BIN, 'dashboard', ...args],
      { env: { ...process.env, ...env } },
      (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
      },
    )
  })
