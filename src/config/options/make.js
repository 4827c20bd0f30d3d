// Short forms for the rows of the option table. A row is a plain frozen object.

/**
 * @typedef {'bool' | 'int' | 'duration' | 'string' | 'strings' | 'map' | 'transforms' | 'members'} OptionType
 * @typedef {'live' | 'workers' | 'start'} Change what a reload does with another value: every worker uses it at once;
 *   all workers are replaced one after another; it is named in a warning, because only a new start can use it
 * @typedef {object} Row an option of a list that is not marked yet
 * @property {string} path key path in the file, `client.token.hmac_secret_key`
 * @property {OptionType} type
 * @property {any} default as it would stand in a file: durations as text with a unit
 * @property {string} doc one line
 * @property {string} [unit] of an int: bytes, seconds ...
 * @property {Record<string, any>} schema JSON schema of the value; of durations, in ms
 * @property {string[]} [values] allowed ones
 * @property {Record<string, string>} [unsupported] unsupported values of Centrifugo, with a message
 * @property {boolean} [secret] never shown in messages
 * @property {boolean} [single] of strings: a single text stands for a list of one
 * @property {boolean} [file] of a string: a path; a relative one starts at the folder of the file that it stands in
 * @property {Change} [change] default: that of its list
 * @property {string} [block] of a proxy: the path of its block, which has the keys of every proxy
 * @property {readonly Option[]} [members] of a list of named objects: options of each of them, without `name`
 * @property {Change} [mounts] what a live option takes from or to an empty value: it switches endpoints or servers
 * @property {boolean} [loadedOnce] with the driver uws, a live option takes new workers: the library loads it only once
 * @typedef {Row & {change: Change}} Option one row of the table
 * @typedef {object} Extra
 * @property {string} [unit]
 * @property {number} [min] durations in ms
 * @property {number} [max] durations in ms
 * @property {string[]} [values] of lists: of each entry
 * @property {Record<string, string>} [unsupported]
 * @property {boolean} [prefix] a URL path that handlers are mounted on
 * @property {boolean} [secret]
 * @property {boolean} [file]
 * @property {Change} [change]
 * @property {Change} [mounts]
 * @property {boolean} [loadedOnce]
 */

/** Longest delay of a Node.js timer (2^31 - 1 ms); a longer one would fire at once. */
const TIMER_MAX = 2147483647

/** A leading slash, none at the end. */
const PATH = '^/([^\\s?#*/]+(/[^\\s?#*/]+)*)?$'

/** @param {Row} option */
const row = option => Object.freeze(option)

/** @param {Change} change @returns {(rows: readonly Row[]) => readonly Option[]} */
const marked = change => rows => Object.freeze(rows.map(option => Object.freeze({ change, ...option })))

// A list becomes part of the table by one of these, so that no option is without its `change`.
export const live = marked('live')
export const newWorkers = marked('workers')
export const newStart = marked('start')

/** @param {number} minimum @param {number} maximum */
const integer = (minimum, maximum) => ({ type: 'integer', minimum, maximum })

/** @param {string[] | undefined} values allowed ones */
const text = values => ({ type: 'string', ...(values && { enum: values }) })

/** @param {Record<string, any>} properties those without a default are required */
const object = properties => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties).filter(name => properties[name].default === undefined),
  properties,
})

/** @param {string} path @param {string} doc @param {boolean} [on] @param {Extra} [extra] */
export const bool = (path, doc, on = false, extra = {}) =>
  row({ path, type: 'bool', default: on, doc, schema: { type: 'boolean' }, ...extra })

/** @param {string} path @param {number} value @param {string} doc @param {Extra} [extra] min is 0 unless stated */
export const int = (path, value, doc, { unit, min = 0, max = Number.MAX_SAFE_INTEGER, ...extra } = {}) =>
  row({ path, type: 'int', default: value, doc, unit, schema: integer(min, max), ...extra })

/** @param {string} path @param {string} value @param {string} doc @param {Extra} [extra] min is 1 ms unless stated */
export const duration = (path, value, doc, { min = 1, max = TIMER_MAX, ...extra } = {}) =>
  row({ path, type: 'duration', default: value, doc, schema: integer(min, max), ...extra })

/** @param {string} path @param {string} value @param {string} doc @param {Extra} [extra] */
export const string = (path, value, doc, { prefix, ...extra } = {}) => {
  const schema = prefix ? { type: 'string', pattern: PATH } : text(extra.values)
  return row({ path, type: 'string', default: value, doc, schema, ...extra })
}

/** @param {string} path @param {string} doc @param {Extra} [extra] */
export const strings = (path, doc, extra = {}) => {
  const schema = { type: 'array', items: { ...text(extra.values), minLength: 1 } }
  return row({ path, type: 'strings', default: [], doc, schema, ...extra })
}

/**
 * A list of strings with at least one entry, or that entry alone.
 * @param {string} path @param {string} value @param {string} doc @param {Extra} [extra]
 */
export const oneOrMore = (path, value, doc, extra = {}) => {
  const schema = { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } }
  return row({ path, type: 'strings', single: true, default: value, doc, schema, ...extra })
}

/**
 * An object with texts under names of any kind.
 * @param {string} path @param {string} doc @param {Extra} [extra]
 */
export const map = (path, doc, extra = {}) => {
  const schema = { type: 'object', additionalProperties: { type: 'string' } }
  return row({ path, type: 'map', default: {}, doc, schema, ...extra })
}

/**
 * A list of objects with names of their own.
 * @param {string} path its last segment is the plural of their noun @param {string} doc @param {readonly Option[]} members
 */
export const named = (path, doc, members) =>
  row({ path, type: 'members', default: [], doc, schema: { type: 'array' }, members })

/**
 * A list of objects.
 * @param {string} path @param {string} doc @param {Record<string, any>} properties JSON schemas of their fields
 */
export const objects = (path, doc, properties) =>
  row({ path, type: 'transforms', default: [], doc, schema: { type: 'array', items: object(properties) } })

/** An object that may be absent. @param {Record<string, any>} properties JSON schemas with defaults */
export const optional = properties => ({ ...object(properties), default: {} })

/**
 * A list of `{code, to: {...}}`: replacements of a code.
 * @param {string} path @param {string} doc @param {Record<string, any>} to JSON schemas of the fields of `to`
 */
export const transforms = (path, doc, to) => objects(path, doc, { code: { type: 'integer' }, to: object(to) })
