/**
 * Goes on with the claims of a token: at once, or, when its keys had to be fetched, when they have come.
 *
 * @template T
 * @param {import('../session.js').Session} session
 * @param {number} id of the command
 * @param {() => T | Promise<T>} verify
 * @param {(error: Error) => Error} refusal what the command makes of a token that is refused
 * @param {(claims: T) => void} work
 */
export function withClaims(session, id, verify, refusal, work) {
  /** @type {T | Promise<T>} */
  let claims
  try {
    claims = verify()
  } catch (error) {
    throw refusal(error)
  }
  if (!(claims instanceof Promise)) return work(claims)
  const refused = claims.catch(error => {
    throw refusal(error)
  })
  session.resumeAfter(id, refused, work)
}
