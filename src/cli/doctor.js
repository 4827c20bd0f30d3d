import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { COMMAND } from '../base/version.js'
import { loadUws } from '../clients/server/index.js'
import {
  CONNECTIONS,
  diagnose,
  filesOf,
  RATE,
  readFacts,
  table,
  WriteError,
  writeFiles,
} from '../metrics/doctor/index.js'
import { UsageError } from './args.js'

/** @import { Command } from './command.js' */

const ROLES = ['server', 'drone']
const FILES = ['sysctl', 'limits', 'service']
const MAX = 1e9
const FACTORS = /** @type {Record<string, number>} */ ({ '': 1, k: 1000, m: 1e6 })

/** @param {Record<string, string>} flags @param {string} name @throws {UsageError} */
function number(flags, name) {
  const text = flags[name]
  if (text === undefined) return undefined
  const found = /^(\d+(?:\.\d+)?)([km]?)$/i.exec(text)
  const value = found === null ? Number.NaN : Math.round(Number(found[1]) * FACTORS[found[2].toLowerCase()])
  if (!(value >= 1 && value <= MAX))
    throw new UsageError(`--${name} ${text}: must be a number from 1 to ${MAX} (50000, 50k, 1m)`)
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
    throw new UsageError(`--${name} ${text}: must be one of ${choices.join(', ')}`)
  return text
}

/** Sentence fragment, or ''. @param {string} root */
function unreadable(root) {
  if (root === '/' && process.platform !== 'linux') return `exist only on Linux (this is ${process.platform})`
  // Nothing mounted there.
  const found = ['proc/meminfo', 'proc/sys', 'proc/self'].some(path => existsSync(join(root, path)))
  if (found) return ''
  return root === '/' ? 'are not mounted here' : `are missing in ${root}`
}

/** @type {Command} */
export const doctor = {
  name: 'doctor',
  summary: 'check limits and kernel settings of this machine',
  help: `Usage: ${COMMAND} doctor [flags]

Checks whether this machine can handle a number of connections: open files, kernel settings, memory, cores,
interrupts. Shows the current value, the required value and the reason for each. Changes settings only with
--write. See docs/doctor.md.

  -n, --connections N    concurrent connections; default: ${CONNECTIONS}
      --role ROLE        server (a gateway) or drone (a load machine); default: server
      --rate N           new connections per second; default: ${RATE}
      --messages N       messages per second, sent to clients or received by drones; default: 0
      --workers N        workers of the gateway; default: one per core
      --addresses N      source addresses of a drone; default: those of the machine
      --print FILE       print only this file: sysctl, limits (limits.d) or service (a systemd drop-in)
      --write DIR        write these files below DIR: / for this machine, another folder to inspect or copy them
      --all              include settings that are already correct in these files
      --json             print JSON
      --root DIR         read proc/ and sys/ below DIR, a copy of another machine's
  -h, --help             print this text
  -V, --version          print the version

Exit status: 0 if the machine can handle the number (always with --print), 1 if it cannot or a file cannot be written,
2 for an invalid command line.

Examples:
  ${COMMAND} doctor -n 1m
  ${COMMAND} doctor -n 25000 --role drone --print sysctl
  ${COMMAND} doctor -n 1m --write limits && sudo cp -r limits/. / && sudo sysctl --system
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

  async run({ env, stdout, stderr, raw }, flags) {
    const { all = false, json = false, root = '/' } = flags
    const wanted = {
      connections: number(flags, 'connections'),
      role: choice(flags, 'role', ROLES),
      rate: number(flags, 'rate'),
      deliveries: number(flags, 'messages'),
      workers: number(flags, 'workers'),
      addresses: number(flags, 'addresses'),
    }
    const print = /** @type {'sysctl' | 'limits' | 'service' | undefined} */ (choice(flags, 'print', FILES))
    if (print !== undefined && (json || flags.write !== undefined))
      throw new UsageError('--print cannot be combined with --json or --write')
    const reason = unreadable(root)
    if (reason !== '') {
      stderr(`halley: doctor requires /proc and /sys, which ${reason}\n`)
      return 1
    }

    const facts = readFacts(root)
    if (root === '/') facts.uws = (await loadUws()).why
    const diagnosis = diagnose(facts, wanted)
    if (print !== undefined) {
      stdout(filesOf(diagnosis, { all })[print] ?? '# no change needed\n')
      return 0
    }
    const code = diagnosis.obstacles.length > 0 ? 1 : 0
    /** @type {Awaited<ReturnType<typeof writeFiles>> | null} */
    let files = null
    let fault = ''
    try {
      if (flags.write !== undefined) files = await writeFiles(flags.write, diagnosis, { all })
    } catch (error) {
      if (!(error instanceof WriteError)) throw error
      fault = error.message
    }
    const { aim, ...rest } = diagnosis
    const { connections, role, rate, workers } = aim
    if (json) {
      const { kernel, cores, memory, container } = facts
      const machine = { kernel, cores, memory, container }
      const written = files?.written ?? []
      const whole = { connections, role, rate, workers, reachable: code === 0, machine, ...rest, written }
      stdout(`${JSON.stringify(whole, null, 2)}\n`)
    } else {
      const colours = process.stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
      const assumed = wanted.connections === undefined ? ' (no --connections given)' : ''
      const count = `${connections.toLocaleString('en')} connections${assumed}`
      stdout(`halley doctor: ${count}, role ${role}\n\n`)
      ;(raw?.stdout ?? stdout)(table(diagnosis, { colours }))
      stdout(`\n${files === null ? hint(filesOf(diagnosis, { all })) : written(files)}`)
    }
    if (fault === '') return code
    stderr(`halley: ${fault}\n`)
    return 1
  },
}

/** @param {Record<string, string | null>} files */
function hint(files) {
  const names = Object.keys(files).filter(name => files[name] !== null)
  if (names.length === 0) return 'No change needed.\n'
  return `To change the settings: --print ${names.join(' | ')}, or --write DIR.\n`
}

/** @param {{written: string[], then: string[]}} files */
function written(files) {
  if (files.written.length === 0) return 'No change needed: no file was written.\n'
  const then =
    files.then.length > 0
      ? [`To apply: ${files.then.join('; ')}. New limits of sessions apply from the next login.`]
      : []
  return [...files.written.map(file => `${file} written.`), ...then, ''].join('\n')
}
