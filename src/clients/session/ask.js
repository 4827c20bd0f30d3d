/** @import { Handler } from '../hooks/contract.js' */
/** @import { HookEvent } from '../hooks/events.js' */
/** @import { Session } from './session.js' */

/**
 * Holds until a promise settles; a rejection becomes the error reply.
 * @template T
 * @param {Session} session @param {number} id of the command @param {Promise<T>} promise
 * @param {(value: T) => void} work not called after a disconnect
 */
export function resumeAfter(session, id, promise, work) {
  session.hold()
  promise.then(
    value => session.resume(id, () => work(value)),
    error =>
      session.resume(id, () => {
        throw error
      }),
  )
}

/**
 * Calls a handler for a command, holding until an asynchronous result. A refusal becomes the error reply.
 * @template {HookEvent} E
 * @template A
 * @param {Session} session @param {number} id of the command @param {Handler<E, A>} handler @param {E} event
 * @param {(answer: A | null) => void} work not called after a disconnect
 * @param {(error: Error) => void} [refuse]
 */
export function ask(session, id, handler, event, work, refuse = raise) {
  let returned = false
  /** @type {Error | null} */
  let refusal = null
  /** @type {A | null} */
  let given = null
  const later = session.context.hookCalls.ask(session, handler, event, (error, answer) => {
    if (!returned) {
      refusal = error
      given = answer
      return
    }
    session.resume(id, () => (error ? refuse(error) : work(answer)))
  })
  returned = true
  if (later) return session.hold()
  if (refusal) refuse(refusal)
  else work(given)
}

/** @param {Error} error @returns {never} */
function raise(error) {
  throw error
}
