// A call of the server API without HTTP: for the methods of an embedding program's gateway.

import { errorText } from './answers.js'
import { runBatch } from './batch.js'
import { MAX_BODY } from './body-limit.js'
import { methods } from './methods.js'
import { BadBody, explain, parseJson, readObject } from './params.js'

/** @import { ApiContext } from './context.js' */

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
