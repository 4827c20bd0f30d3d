// Runs multi-command requests (`batch`, and the legacy form of consecutive objects), and calls without HTTP for
// embedding programs and hooks modules. A batch is validated completely first: a rejected one has no effect.

import { errors } from '../../base/errors.js'
import { rawMember } from '../../clients/protocol/raw-json.js'
import { errorText } from './answers.js'
import { methods } from './methods.js'
import { BadBody, explain, flag, parseJson, readObject, string, uint32 } from './params.js'
import { MAX_BODY } from './wire.js'

/** @import { ApiContext, Method } from './context.js' */
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
    else if (at >= text.length) throw new BadBody('unterminated string')
  }
}

/**
 * @param {string} text anything; the objects may be malformed inside
 * @returns {{objects: string[], pure: boolean}} top-level objects; pure: only white space between them
 * @throws {BadBody} if an object is incomplete
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
      if (--depth < 0) throw new BadBody('unmatched closing brace')
      if (depth === 0) objects.push(text.slice(start, at + 1))
    } else {
      if (code === QUOTE) at = closingQuote(text, at)
      if (depth === 0 && code > SPACE) pure = false
    }
  }
  if (depth !== 0) throw new BadBody('unterminated object')
  return { objects, pure }
}

/**
 * @param {Call} call @param {ApiContext} context @param {string} label of the result
 * @returns {Promise<string>} a member, without braces: result or error
 */
async function settle({ name, method, params, given }, context, label) {
  context.traffic.api(name).count++
  try {
    return `"${label}":${await method.run(params, context)}`
  } catch (error) {
    return `"error":${errorText(explain(error, method.fields, given), context)}`
  }
}

/** Commands are parsed from the text to keep payloads unchanged. */
const batchFields = {
  commands: {
    zero: Object.freeze([]),
    nullable: false,
    /** @param {any} value */
    read(value) {
      if (!Array.isArray(value)) throw new BadBody('commands must be an array')
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
 * @returns {Promise<string>} complete response, not wrapped in `result`
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

/** @param {number} code @param {string} message */
const refusal = (code, message) => `{"error":${JSON.stringify({ code, message })}}`

/**
 * @param {string} name of the method, or `batch` @param {string} text JSON object of its fields
 * @param {ApiContext} context
 * @returns {Promise<string>} JSON response, as over HTTP: `result`, `error` or `replies`
 */
export async function runCall(name, text, context) {
  if (text.length > MAX_BODY)
    return refusal(106, `limit exceeded: a call of ${text.length} bytes (maximum ${MAX_BODY})`)
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
