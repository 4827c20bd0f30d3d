import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'

/** @typedef {{text: string, hash: string}} Script `hash` for EVALSHA */

/** @type {Script[]} loaded by every new connection */
export const SCRIPTS = []

/** @param {string} name of a file in scripts/, whose head describes arguments and result @returns {Script} */
function script(name) {
  const text = readFileSync(new URL(`scripts/${name}.lua`, import.meta.url), 'utf8')
  const script = Object.freeze({ text, hash: createHash('sha1').update(text).digest('hex') })
  SCRIPTS.push(script)
  return script
}

export const publish = script('publish')
export const read = script('read')
export const presenceAlive = script('presence-alive')
export const presenceBeat = script('presence-beat')
export const presenceChange = script('presence-change')
export const presenceOwn = script('presence-own')
export const presenceStats = script('presence-stats')
export const presenceSweep = script('presence-sweep')
export const userClaim = script('user-claim')
export const userWrite = script('user-write')
export const registryJoin = script('registry-join')
export const registryRemove = script('registry-remove')

/**
 * Encodes a command (RESP). The work of ioredis on each argument costs more than the rest of a script call with
 * hundreds of them, so texts are joined and written together here.
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
