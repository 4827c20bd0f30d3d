import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  CONNECTIONS,
  diagnose,
  filesOf,
  RATE,
  readFacts,
  table,
  WriteError,
  writeFiles,
} from '../doctor/index.js'
import { UsageError } from './args.js'

/** @import { Command } from './command.js' */

const ROLES = ['server', 'drone']
const FILES = ['sysctl', 'limits', 'service']
const MOST = 1e9
const FACTORS = /** @type {Record<string, number>} */ ({ '': 1, k: 1000, m: 1e6 })

/** @param {Record<string, string>} flags @param {string} name @returns {number | undefined} @throws {UsageError} */
function number(flags, name) {
  const text = flags[name]
  if (text === undefined) return undefined
  const found = /^(\d+(?:\.\d+)?)([km]?)$/i.exec(text)
  const value = found === null ? Number.NaN : Math.round(Number(found[1]) * FACTORS[found[2].toLowerCase()])
  if (!(value >= 1 && value <= MOST))
    throw new UsageError(`--${name} ${text}: it must be a number from 1 to ${MOST} (50000, 50k, 1m)`)
  return value
}

/**
 * @param {Record<string, string>} flags @param {string} name @param {string[]} choices
 * @returns {any}
 * @throws {UsageError}
 */
function choice(flags, name, choices) {
  const text = flags[name]
  if (text !== undefined && !choices.includes(text))
    throw new UsageError(`--${name} ${text}: it must be one of ${choices.join(', ')}`)
  return text
}

/** @type {Command} */
export const doctor = {
  name: 'doctor',
  summary: 'check limits and kernel settings of this machine',
  help: `Usage: halley doctor [flags]

Compares this machine with a number of connections: open files, kernel settings, memory, cores, interrupts. Says of each what it is,
what it should be and why; prints or writes the files that change it. It changes nothing by itself. See docs/doctor.md.

  -n, --connections N    that this machine should have, at once; left out: ${CONNECTIONS}
      --role ROLE        server: a gateway; drone: a machine that loads one; left out: server
      --rate N           new connections in a second; left out: ${RATE}
      --messages N       messages in a second, sent to clients or received by drones; left out: 0
      --workers N        of the gateway; left out: one for each core
      --addresses N      source addresses of a drone; left out: those of the machine
      --print FILE       nothing but the text of a file: sysctl, limits (limits.d) or service (a drop-in for systemd)
      --write DIR        write these files below DIR: / for this machine, another folder to look at them or to copy them
      --all              in these files also what is right already
      --json             for programs
      --root DIR         read proc/ and sys/ there: a copy of another machine's
  -h, --help             this text
  -V, --version          the version

Exit status: 0 when the number can be reached, 1 when it cannot (or files cannot be written), 2 for a command line that cannot be
understood. With --print it is 0.

Examples:
  halley doctor -n 1m
  halley doctor -n 25000 --role drone --print sysctl
  sudo halley doctor -n 1m --write / && sudo sysctl --system
`,
  flags: {
    connections: { type: 'string', short: 'n' },
    role: { type: 'string' },
    rate: { type: 'string' },
    messages: { type: 'string' },
    workers: { type: 'string' },
    addresses: { type: 'string' },
    print: { type: 'string' },
    write: { type: 'string' },
    all: { type: 'boolean' },
    json: { type: 'boolean' },
    root: { type: 'string' },
  },

  async run({ env, stdout, stderr }, flags) {
    const { all = false, json = false, root = '/' } = flags
    const asked = {
      connections: number(flags, 'connections'),
      role: choice(flags, 'role', ROLES),
      rate: number(flags, 'rate'),
      deliveries: number(flags, 'messages'),
      workers: number(flags, 'workers'),
      addresses: number(flags, 'addresses'),
    }
    const print = /** @type {'sysctl' | 'limits' | 'service' | undefined} */ (choice(flags, 'print', FILES))
    if (print !== undefined && (json || flags.write !== undefined))
      throw new UsageError('--print goes with neither --json nor --write')
    if (!existsSync(join(root, 'proc'))) {
      const what = root === '/' ? 'only Linux has' : `are not in ${root}`
      stderr(`halley: doctor reads /proc and /sys, which ${what}\n`)
      return 1
    }

    const facts = readFacts(root)
    const diagnosis = diagnose(facts, asked)
    if (print !== undefined) {
      stdout(filesOf(diagnosis, { all })[print] ?? '# nothing has to change\n')
      return 0
    }
    const code = diagnosis.obstacles.length > 0 ? 1 : 0
    /** @type {Awaited<ReturnType<typeof writeFiles>> | null} */
    let files = null
    let fault = ''
    if (flags.write !== undefined) {
      try {
        files = await writeFiles(flags.write, diagnosis, { all })
      } catch (error) {
        if (!(error instanceof WriteError)) throw error
        fault = error.message
      }
    }
    if (json) {
      const { aim, ...rest } = diagnosis
      const { connections, role, rate, workers } = aim
      const { kernel, cores, memory, container } = facts
      const machine = { kernel, cores, memory, container }
      const written = files?.written ?? []
      const whole = { connections, role, rate, workers, reachable: code === 0, machine, ...rest, written }
      stdout(`${JSON.stringify(whole, null, 2)}\n`)
    } else {
      const colours = process.stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
      const assumed = asked.connections === undefined ? ' (no --connections given)' : ''
      stdout(
        `halley doctor: ${diagnosis.aim.connections.toLocaleString('en')} connections${assumed}, role ${diagnosis.aim.role}\n\n`,
      )
      stdout(table(diagnosis, { colours }))
      stdout(`\n${files === null ? hint(filesOf(diagnosis, { all })) : written(files)}`)
    }
    if (fault === '') return code
    stderr(`halley: ${fault}\n`)
    return 1
  },
}

/** @param {Record<string, string | null>} files @returns {string} */
function hint(files) {
  const names = Object.keys(files).filter(name => files[name] !== null)
  if (names.length === 0) return 'No limit and no setting has to change.\n'
  return `Files that change it: --print ${names.join(' | ')}, or --write DIR.\n`
}

/** @param {{written: string[], then: string[]}} files */
function written(files) {
  if (files.written.length === 0) return 'Nothing has to change: no file was written.\n'
  const then =
    files.then.length > 0
      ? [`To make it count: ${files.then.join('; ')}. Sessions have new limits from the next login on.`]
      : []
  return [...files.written.map(file => `${file} is written.`), ...then, ''].join('\n')
}
