// A call of the server API without HTTP: for the gateway object of an embedding program and of a hooks module.

import { errorText } from './answers.js'
import { ApiError } from './api-error.js'
import { runBatch } from './batch.js'
import { MAX_BODY } from './body-limit.js'
import { methods } from './methods.js'
import { BadBody, explain, parseJson, readObject } from './params.js'

/** @import { ApiContext } from './context.js' */
/** @import { Send } from './server-api.js' */

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
