/**
 * An error of the server API as methods. `code` is that of docs/errors.md; 0: the API has not answered (the gateway has
 * stopped, cannot be reached, or answers late or with something else).
 */
export class ApiError extends Error {
  /**
   * @param {string} message @param {object} [more]
   * @param {number} [more.code] of docs/errors.md; 0: no answer
   * @param {number} [more.status] of the HTTP answer; 0: there is none
   * @param {unknown} [more.cause] error of the transport
   */
  constructor(message, { code = 0, status = 0, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ApiError'
    this.code = code
    this.status = status
  }
}

/** Error 107. @param {string} what is wrong @param {unknown} [cause] */
export const badRequest = (what, cause) => new ApiError(`bad request: ${what}`, { code: 107, cause })
