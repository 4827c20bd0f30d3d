/** Error of a call. `code`: see docs/errors.md; 0: no response in time, or not of a server API. */
export class ApiError extends Error {
  /**
   * @param {string} message @param {object} [more]
   * @param {number} [more.code] see docs/errors.md; 0: none
   * @param {number} [more.status] HTTP status; 0: no response
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
