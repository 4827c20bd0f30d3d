// Short forms for the rows of the option table. A row is a plain frozen object.

/**
 * @typedef {'bool' | 'int' | 'duration' | 'string' | 'strings' | 'transforms' | 'namespaces'} OptionType
 *
 * @typedef {object} Option one row of the table
 * @property {string} path key path in the file, `client.token.hmac_secret_key`
 * @property {OptionType} type
 * @property {any} default as it would stand in a file: durations as text with a unit
 * @property {string} doc one line
 * @property {string} [unit] of an int: bytes, seconds ...
 * @property {number} [min] durations in ms
 * @property {number} [max] durations in ms
 * @property {string[]} [values] the only ones allowed
 * @property {Record<string, string>} [later] values that Centrifugo knows and Halley has not yet, and what to say
 * @property {boolean} [prefix] a URL path that handlers are mounted on
 * @property {boolean} [secret] never shown in messages
 * @property {boolean} [single] of strings: a text alone stands for a list of one
 * @property {Record<string, {type: 'int' | 'string', min?: number, max?: number, default?: any}>} [to] of a list of transforms `{code, to}`: the fields
 *   of `to`
 *
 * @typedef {Partial<Pick<Option, 'unit' | 'min' | 'max' | 'values' | 'later' | 'prefix' | 'secret' | 'to'>>} Extra
 */

/** Longest delay a Node timer can hold (2^31 - 1 ms); above that it would fire at once. */
export const TIMER_MAX = 2147483647

/** @param {Option} option */
const row = option => Object.freeze(option)

/**
 * @param {string} path
 * @param {string} doc
 * @param {boolean} [on]
 */
export const bool = (path, doc, on = false) => row({ path, type: 'bool', default: on, doc })

/**
 * @param {string} path
 * @param {number} value
 * @param {string} doc
 * @param {Extra} [extra] min is 0 unless stated
 */
export const int = (path, value, doc, extra = {}) =>
  row({ path, type: 'int', default: value, doc, min: 0, max: Number.MAX_SAFE_INTEGER, ...extra })

/**
 * @param {string} path
 * @param {string} value
 * @param {string} doc
 * @param {Extra} [extra] min is 1 ms unless stated
 */
export const duration = (path, value, doc, extra = {}) =>
  row({ path, type: 'duration', default: value, doc, min: 1, max: TIMER_MAX, ...extra })

/**
 * @param {string} path
 * @param {string} value
 * @param {string} doc
 * @param {Extra} [extra]
 */
export const string = (path, value, doc, extra = {}) =>
  row({ path, type: 'string', default: value, doc, ...extra })

/**
 * @param {string} path
 * @param {string} doc
 * @param {Extra} [extra] `values` are those of each entry
 */
export const strings = (path, doc, extra = {}) => row({ path, type: 'strings', default: [], doc, ...extra })

/**
 * A list of strings with at least one entry, or that one entry alone.
 * @param {string} path
 * @param {string} value
 * @param {string} doc
 * @param {Extra} [extra]
 */
export const oneOrMore = (path, value, doc, extra = {}) =>
  row({ path, type: 'strings', single: true, default: value, doc, ...extra })

/**
 * A list of `{code, to: {...}}`: what becomes of a code.
 * @param {string} path
 * @param {string} doc
 * @param {Required<Option>['to']} to
 */
export const transforms = (path, doc, to) => row({ path, type: 'transforms', default: [], doc, to })
