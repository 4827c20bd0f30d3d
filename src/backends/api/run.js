// Runs calls of the server API: several commands in one request (`batch`, and the older form of objects one after
// another), and calls without HTTP, for the gateway object of an embedding program and of a hooks module. A batch is
// read whole before anything runs, so a refused request has no effect.

import { errors } from '../../base/errors.js'
import { rawMember } from '../../clients/protocol/raw-json.js'
import { errorText } from './answers.js'
import { ApiError } from './api-error.js'
import { methods } from './methods.js'
import { BadBody, explain, flag, parseJson, readObject, string, uint32 } from './params.js'
import { MAX_BODY } from './wire.js'

/** @import { ApiContext, Method } from './context.js' */
/** @import { Send } from './server-api.js' */
/** @import { ReplyError } from '../../base/errors.js' */

/** @typedef {{name: string, method: Method, params: any, given: any}} Call a command; name: of the method */

const QUOTE = 34
const BACKSLASH = 92
const OPEN_BRACE = 123
const CLOSE_BRACE = 125
const SPACE = 32

/**
 * @param {string} text anything @param {number} at index of the opening quote
 * @returns {number} index of the closing quote
 * @throws {BadBody} if there is none
 */
function closingQuote(text, at) {
  for (;;) {
    const code = text.charCodeAt(++at)
    if (code === QUOTE) return at
    if (code === BACKSLASH) at++
    else if (at >= text.length) throw new BadBody('a string does not end')
  }
}

/**
 * @param {string} text anything; the objects may be malformed inside
 * @returns {{objects: string[], pure: boolean}} the outermost objects; pure: only white space around them
 * @throws {BadBody} if an object does not end
 */
function cutObjects(text) {
  const objects = []
  let pure = true
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === OPEN_BRACE) {
      if (depth++ === 0) start = at
    } else if (code === CLOSE_BRACE) {
      if (--depth < 0) throw new BadBody('a brace closes nothing')
      if (depth === 0) objects.push(text.slice(start, at + 1))
    } else {
      if (code === QUOTE) at = closingQuote(text, at)
      if (depth === 0 && code > SPACE) pure = false
    }
  }
  if (depth !== 0) throw new BadBody('an object does not end')
  return { objects, pure }
}

/**
 * @param {Call} call @param {ApiContext} context @param {string} label of the result
 * @returns {Promise<string>} a member, without braces: the result, or the error
 */
async function settle({ name, method, params, given }, context, label) {
  context.traffic.api(name).count++
  try {
    return `"${label}":${await method.run(params, context)}`
  } catch (error) {
    return `"error":${errorText(explain(error, method.fields, given), context)}`
  }
}

/** The commands are read from the text: payloads pass unchanged. */
const batchFields = {
  commands: {
    zero: Object.freeze([]),
    nullable: false,
    /** @param {any} value */
    read(value) {
      if (!Array.isArray(value)) throw new BadBody('commands must be a list')
      return value
    },
  },
  parallel: flag,
}

/** @param {any} command @param {string} text @returns {Call | ReplyError} */
function readCommand(command, text) {
  if (typeof command !== 'object' || Array.isArray(command)) throw new BadBody('a command must be an object')
  for (const [name, method] of methods) {
    if (!Object.hasOwn(command, name) || command[name] === null) continue
    const params = readObject(method.fields, command[name], /** @type {string} */ (rawMember(text, name)))
    return { name, method, params, given: command[name] }
  }
  return errors.notFound
}

/**
 * @param {string} body @param {ApiContext} context
 * @returns {Promise<string>} the whole answer, without `result` around it
 * @throws {BadBody}
 */
export async function runBatch(body, context) {
  const { commands, parallel } = readObject(batchFields, parseJson(body), body)
  if (commands.length === 0) return '{}'
  const texts = cutObjects(/** @type {string} */ (rawMember(body, 'commands'))).objects.values()
  /** @type {(Call | ReplyError)[]} */
  const calls = commands.map((/** @type {any} */ command) =>
    command === null ? errors.badRequest : readCommand(command, texts.next().value ?? ''),
  )
  /** @param {Call | ReplyError} call */
  const run = call =>
    'method' in call ? settle(call, context, call.name) : `"error":${errorText(call, context)}`

  let replies = []
  if (parallel) replies = await Promise.all(calls.map(run))
  else for (const call of calls) replies.push(await run(call))
  return `{"replies":[${replies.map(reply => `{${reply}}`).join(',')}]}`
}

const legacyFields = { id: uint32, method: string }

/** @param {string} text @returns {Call & {id: number}} */
function readLegacy(text) {
  const command = parseJson(text)
  const { id, method: name } = readObject(legacyFields, command, text)
  const method = methods.get(name.toLowerCase())
  if (method === undefined) throw new BadBody('unknown method')
  const given = rawMember(text, 'params') ?? 'null'
  const params =
    given === 'null' ? readObject(method.fields, {}, '{}') : readObject(method.fields, command.params, given)
  return { id, name, method, params, given: command.params ?? {} }
}

/** @param {string} body @param {ApiContext} context @returns {Promise<string>} @throws {BadBody} */
export async function runLegacy(body, context) {
  const { objects, pure } = cutObjects(body)
  if (!pure || objects.length === 0) throw new BadBody('the body must be JSON objects')
  const calls = objects.map(readLegacy)
  const replies = []
  for (const call of calls) {
    const outcome = await settle(call, context, 'result')
    replies.push(call.id === 0 ? `{${outcome}}` : `{"id":${call.id},${outcome}}`)
  }
  return replies.join('\n')
}

/** Bytes of calls under way; more are refused with error 111. */
const MAX_BYTES = 64 * 1024 * 1024
/** Bytes that a call takes beside its text, approximately. */
const CALL_BYTES = 512

/**
 * Calls in this process for a ServerApi, bounded in bytes.
 * @param {(name: string, text: string, repeatable: boolean) => Promise<string>} run `runCall`, or what leads to it
 * @returns {Send}
 */
export function limitCalls(run) {
  let open = 0
  return async (name, text, repeatable) => {
    const bytes = CALL_BYTES + text.length
    if (open + bytes > MAX_BYTES)
      throw new ApiError(`too many requests: calls of ${open} bytes are under way`, { code: 111 })
    open += bytes
    try {
      return JSON.parse(await run(name, text, repeatable))
    } finally {
      open -= bytes
    }
  }
}

/** @param {number} code @param {string} message */
const refusal = (code, message) => `{"error":${JSON.stringify({ code, message })}}`

/**
 * @param {string} name of the method, or `batch` @param {string} text JSON object of its fields
 * @param {ApiContext} context
 * @returns {Promise<string>} JSON text of the answer, as over HTTP: `result`, `error` or `replies`
 */
export async function runCall(name, text, context) {
  if (text.length > MAX_BODY)
    return refusal(106, `limit exceeded: a call of ${text.length} bytes, at most ${MAX_BODY}`)
  const method = methods.get(name)
  try {
    if (name === 'batch') return await runBatch(text, context)
    if (method === undefined) return refusal(104, 'method not found')
    context.traffic.api(name).count++
    return `{"result":${await method.run(readObject(method.fields, parseJson(text), text), context)}}`
  } catch (error) {
    if (error instanceof BadBody) return refusal(107, error.message)
    return `{"error":${errorText(method ? explain(error, method.fields, parseJson(text)) : error, context)}}`
  }
}
