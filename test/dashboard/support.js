// Helpers of tests of the whole program.

import { join } from 'node:path'
import { spawnHalley } from '../kit/cli.js'
import { tempDir } from '../kit/folders.js'
import { bin } from '../kit/gateway.js'
import { Tmux } from '../kit/tmux.js'
import { MockGateway, recentSnapshots } from './mock-gateway.js'

/**
 * @param {import('tap').Test} t
 * @param {any} [options]
 * @param {string} [path]
 */
export async function mock(t, options = {}, path = '') {
  const snapshots = recentSnapshots({ workers: 2, seconds: 60, connections: 20_000, csv: true, ...options })
  const gateway = await new MockGateway(path || join(tempDir(t), 's.sock'), snapshots).listen()
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
  await terminal.tmux.enter(`${process.execPath} ${bin} dashboard ${args}; echo exit $?`)
  return terminal
}

/**
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 * @returns {Promise<{code: number, out: string, err: string}>}
 */
export const run = (args, env = {}) => spawnHalley(['dashboard', ...args], { env })
