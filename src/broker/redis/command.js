import { Redis } from 'ioredis'

/**
 * @param {string} name
 * @param {(string | Buffer | number)[]} args
 * @returns {Buffer} the command as it goes over the wire (RESP). What ioredis does with each argument costs more than all else about
 *   a script with hundreds of them: here texts are joined, and written together
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

/** A command that is written as it was encoded here. */
export class EncodedCommand extends Redis.Command {
  #bytes

  /**
   * @param {string} name
   * @param {(string | Buffer | number)[]} args
   */
  constructor(name, args) {
    super(name)
    this.#bytes = encode(name, args)
  }

  toWritable() {
    return this.#bytes
  }
}
