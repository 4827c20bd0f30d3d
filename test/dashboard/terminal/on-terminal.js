// program.js on a real terminal.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { assertRestored, Tmux } from '../../kit/tmux.js'
import { eventually, within } from '../../kit/wait.js'

const PROGRAM = fileURLToPath(new URL('program.js', import.meta.url))

/**
 * The program on a terminal, started from a shell that has shown something before.
 * @param {import('tap').Test} t
 * @param {object} [options] of the program
 * @param {Parameters<typeof Tmux.start>[1]} [place]
 */
export async function start(t, options = {}, place = {}) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const { tmux, settings } = await Tmux.shell(t, place)
  const connected = once(server, 'connection')
  await tmux.enter(`node ${PROGRAM} ${port} '${JSON.stringify(options)}'`)
  const [socket] = await connected
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]()
  const program = {
    tmux,
    settings,
    /** @param {object} command */
    tell: command => socket.write(`${JSON.stringify(command)}\n`),
    /**
     * @param {string} what
     * @returns {Promise<any>} the next message that tells it
     */
    hear: async what => {
      for (;;) {
        const { value, done } = await within(lines.next(), `the program to report ${what}`)
        if (done) throw new Error(`the program has ended before it reported ${what}`)
        const message = JSON.parse(value)
        if (what in message) return message
      }
    },
    /** @param {...string} lines */
    draw: (...lines) => program.tell({ draw: lines.map(text => [[text, '']]) }),
  }
  return { ...program, ...(await program.hear('pid')) }
}

/**
 * @param {import('tap').Test} t
 * @param {Awaited<ReturnType<typeof start>>} program that has ended, or stands still
 */
export async function isLeft(t, program) {
  const { tmux } = program
  await assertRestored(t, program)
  await tmux.enter("echo o''k")
  await tmux.until(/^(?:\S+ )?ok$/m)
  t.match(await tmux.styled(), /^(?:\S+ )?ok *$/m, 'no style is left over')
}

/**
 * @param {number} pid
 * @returns {string} '' when it is not there
 */
export function stateOf(pid) {
  try {
    return execFileSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' })
      .trim()
      .replace(/^Z.*/, '')
  } catch {
    return ''
  }
}

/** @param {number} pid @returns {Promise<boolean>} whether the process ends in time */
export const hasEnded = async pid =>
  (await eventually(
    () => stateOf(pid),
    state => state === '',
  )) === ''

/** @param {number} pid @returns {Promise<boolean>} whether the process stops in time, as SIGTSTP does */
export const isStopped = async pid => {
  const is = (/** @type {string} */ state) => state.startsWith('T')
  return is(await eventually(() => stateOf(pid), is))
}

/** @param {number} pid of the program @returns {Promise<number>} its only child, the guard */
export async function guardOf(pid) {
  const [guard] = await eventually(
    () => childrenOf(pid),
    found => found.length === 1,
  )
  return guard
}

/** @param {number} pid */
const childrenOf = pid =>
  execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' })
    .split('\n')
    .map(line => line.trim().split(/ +/).map(Number))
    .filter(([, parent]) => parent === pid)
    .map(([child]) => child)
