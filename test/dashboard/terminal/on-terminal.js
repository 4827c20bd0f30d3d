// program.js on a real terminal.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { assertRestored, Tmux } from '../../kit/tmux.js'
import { eventually, until } from '../../kit/wait.js'

const PROGRAM = fileURLToPath(new URL('program.js', import.meta.url))

/**
 * A program on a terminal that exchanges lines of JSON with the test, started from a shell that has printed before.
 * @param {import('tap').Test} t
 * @param {(port: number) => string} command port: of the test
 * @param {Parameters<typeof Tmux.start>[1]} [place]
 */
export async function connected(t, command, place = {}) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const { tmux, settings } = await Tmux.shell(t, place)
  const connection = once(server, 'connection')
  await tmux.enter(command(port))
  const [socket] = await connection
  t.teardown(() => socket.destroy())
  const lines = createInterface({ input: socket })
  // readline re-emits errors of its input.
  for (const emitter of [socket, lines]) emitter.on('error', () => {})
  const messages = /** @type {any[]} */ ([])
  lines.on('line', line => messages.push(JSON.parse(line)))
  return {
    tmux,
    settings,
    messages,
    /** @param {object} message */
    send: message => socket.write(`${JSON.stringify(message)}\n`),
    /** @param {string} field @returns {Promise<any>} the next message with it; those before it are dropped */
    next: field =>
      until(() => {
        const at = messages.findIndex(message => field in message)
        return at >= 0 && messages.splice(0, at + 1).at(-1)
      }, `a message with ${field}`),
  }
}

/**
 * program.js on a terminal.
 * @param {import('tap').Test} t
 * @param {object} [options] of the program
 * @param {Parameters<typeof Tmux.start>[1]} [place]
 */
export async function start(t, options = {}, place = {}) {
  const program = await connected(t, port => `node ${PROGRAM} ${port} '${JSON.stringify(options)}'`, place)
  const draw = (/** @type {string[]} */ ...lines) => program.send({ draw: lines.map(text => [[text, '']]) })
  return { ...program, draw, ...(await program.next('pid')) }
}

/** @param {import('tap').Test} t @param {Awaited<ReturnType<typeof start>>} program ended, or stopped */
export async function isLeft(t, program) {
  const { tmux } = program
  await assertRestored(t, program)
  await tmux.enter("echo o''k")
  await tmux.until(/^(?:\S+ )?ok$/m)
  t.match(await tmux.styled(), /^(?:\S+ )?ok *$/m, 'the style is reset')
}

/** @param {number} pid @returns {string} state of the process; '': it has ended */
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
