import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'

/** @typedef {{text: string, hash: string}} Script `hash` for EVALSHA */

/** @type {Script[]} loaded by every new connection */
export const SCRIPTS = []

/**
 * Loads a file of scripts/. A line `--- name` begins a script, whose head describes arguments and result; what precedes
 * the first one belongs to all.
 * @param {string} file @returns {Record<string, Script>} by name
 */
function load(file) {
  const lines = readFileSync(new URL(`scripts/${file}`, import.meta.url), 'utf8')
  const [common, ...sections] = lines.split(/^--- /m)
  const scripts = sections.map(section => {
    const end = section.indexOf('\n')
    const text = common + section.slice(end + 1)
    const script = Object.freeze({ text, hash: createHash('sha1').update(text).digest('hex') })
    SCRIPTS.push(script)
    return [section.slice(0, end), script]
  })
  return Object.fromEntries(scripts)
}

export const { branch, publish, read } = load('streams.lua')
export const { presenceAlive, presenceBeat, presenceChange, presenceOwn, presenceStats, presenceSweep } =
  load('presence.lua')
export const { userClaim, userWrite } = load('users.lua')
export const { registryJoin, registryRemove } = load('registry.lua')
export const { orderAppend, orderRead } = load('orders.lua')
export const { lifecycleAppend, lifecycleBeat, lifecycleChange, lifecycleLeave, lifecycleTake } =
  load('lifecycle.lua')

/**
 * Encodes a command (RESP), joining texts. Processor time of this process for `publish` against Redis 7.0, with Node.js 20,
 * mean of three runs in both orders: the encoding of ioredis instead takes 34 % to 50 % more for batches of 16 publications
 * and 46 % more for 64. Its public pipelines take 80 % to 115 % more, and deliver replies later than the messages behind
 * them.
 * @param {string} name @param {(string | Buffer | number)[]} args @returns {Buffer}
 */
function encode(name, args) {
  /** @type {(string | Buffer)[]} */
  const chunks = []
  let text = `*${args.length + 1}\r\n$${name.length}\r\n${name}\r\n`
  let size = text.length
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (typeof arg === 'object') {
      const head = `${text}$${arg.length}\r\n`
      size += head.length - text.length + arg.length + 2
      chunks.push(head, arg)
      text = '\r\n'
    } else {
      const value = typeof arg === 'string' ? arg : String(arg)
      const length = Buffer.byteLength(value)
      const head = `$${length}\r\n`
      text += `${head}${value}\r\n`
      size += head.length + length + 2
    }
  }
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  for (const chunk of chunks) {
    at += typeof chunk === 'string' ? bytes.write(chunk, at) : chunk.copy(bytes, at)
  }
  bytes.write(text, at)
  return bytes
}

/** A command that is encoded here. */
export class EncodedCommand extends Redis.Command {
  #bytes

  /** @param {string} name @param {(string | Buffer | number)[]} args */
  constructor(name, args) {
    super(name)
    this.#bytes = encode(name, args)
  }

  toWritable() {
    return this.#bytes
  }
}
