// Short forms for the rows of the option table. A row is a plain frozen object; its type has the path and the type of
// the value, from which TypeScript derives the type of the whole configuration.

/**
 * @typedef {'bool' | 'int' | 'duration' | 'string' | 'strings' | 'map' | 'transforms' | 'members'} OptionType
 * @typedef {'live' | 'workers' | 'start'} Change what a reload does with another value: every worker uses it at once;
 *   all workers are replaced one after another; it is named in a warning, because only a new start can use it
 */

/**
 * What a value must be, in terms of JSON schema. Durations are in ms.
 * @typedef {object} Schema
 * @property {'boolean' | 'integer' | 'string' | 'array' | 'object'} type
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {readonly string[]} [enum]
 * @property {string} [pattern] of a URL path
 * @property {number} [minLength] 1: not empty
 * @property {number} [minItems] 1: not empty
 * @property {Schema} [items] of an array
 * @property {Readonly<Record<string, Schema>>} [properties] of an object; without a default a property is required
 * @property {Schema} [values] of an object with names of any kind: each of its values
 * @property {unknown} [default]
 */

/**
 * An option of a list that is not marked yet.
 * @template {string} [P=string]
 * @template [V=any]
 * @typedef {object} Row
 * @property {P} path key path in the file, `client.token.hmac_secret_key`
 * @property {V} [value] only for the type: it is never set
 * @property {OptionType} type
 * @property {any} default as it would stand in a file: durations as text with a unit
 * @property {string} doc one line
 * @property {string} [unit] of an int: bytes, seconds ...
 * @property {Schema} schema
 * @property {readonly string[]} [values] allowed ones
 * @property {Record<string, string>} [unsupported] unsupported values of Centrifugo, with a message
 * @property {boolean} [secret] never shown in messages
 * @property {boolean} [single] of strings: a single text stands for a list of one
 * @property {boolean} [file] of a string: a path; a relative one starts at the folder of the file that it stands in
 * @property {Change} [change] default: that of its list
 * @property {string} [block] of a proxy: the path of its block, which has the keys of every proxy
 * @property {readonly Option[]} [members] of a list of named objects: options of each of them, without `name`
 * @property {Change} [mounts] what a live option takes from or to an empty value: it switches endpoints or servers
 * @property {boolean} [loadedOnce] with the driver uws, a live option takes new workers: the library loads it only once
 */

/** @typedef {Row & {change: Change}} Option one row of the table */

/**
 * @typedef {object} Extra
 * @property {string} [unit]
 * @property {number} [min] durations in ms
 * @property {number} [max] durations in ms
 * @property {readonly string[]} [values] of lists: of each entry
 * @property {Record<string, string>} [unsupported]
 * @property {boolean} [prefix] a URL path that handlers are mounted on
 * @property {boolean} [secret]
 * @property {boolean} [file]
 * @property {Change} [change]
 * @property {Change} [mounts]
 * @property {boolean} [loadedOnce]
 */

/**
 * @template P
 * @typedef {P extends `${infer Head}.${string}` ? Head : P} Head first segment of a path
 */

/**
 * @template R
 * @template {string} K
 * @typedef {R extends {path: K, value?: infer V} ? V : never} ValueAt type of the option at the path K
 */

/**
 * @template R
 * @template {string} K
 * @typedef {R extends {path: `${K}.${infer Rest}`, value?: infer V} ? {path: Rest, value?: V} : never} Below
 */

/**
 * The configuration that rows describe.
 * @template {{path: string}} R
 * @typedef {{readonly [K in Head<R['path']>]: [ValueAt<R, K>] extends [never] ? Tree<Below<R, K>> : ValueAt<R, K>}} Tree
 */

/**
 * Rows with a longer path.
 * @template {string} P
 * @template R
 * @typedef {R extends Row<infer K, infer V> ? Row<`${P}.${K}`, V> : never} Under
 */

/**
 * @template S
 * @typedef {S extends {type: 'integer'} ? number : S extends {type: 'boolean'} ? boolean : S extends {type: 'string'}
 *   ? string : S extends {properties: infer Q} ? {readonly [K in keyof Q]: ValueOf<Q[K]>} : never} ValueOf value of a
 *   schema
 */

/** Longest delay of a Node.js timer (2^31 - 1 ms); a longer one would fire at once. */
const TIMER_MAX = 2147483647

/** A leading slash, none at the end. */
const PATH = '^/([^\\s?#*/]+(/[^\\s?#*/]+)*)?$'

/**
 * @param {Change} change
 * @returns {<R extends Row>(rows: readonly R[]) => readonly (R & {change: Change})[]}
 */
const marked = change => rows => Object.freeze(rows.map(option => Object.freeze({ change, ...option })))

// A list becomes part of the table by one of these, so that no option is without its `change`.
export const live = marked('live')
export const newWorkers = marked('workers')
export const newStart = marked('start')

/**
 * @template {string} P
 * @template {Row} R
 * @param {P} prefix
 * @param {readonly R[]} rows
 * @param {Partial<Row>} [extra]
 * @returns {Under<P, R>[]}
 */
export const under = (prefix, rows, extra) =>
  /** @type {any} */ (rows.map(option => ({ ...option, path: `${prefix}.${option.path}`, ...extra })))

/**
 * @template {string} P
 * @param {P} path
 * @param {string} doc
 * @param {boolean} [on]
 * @param {Extra} [extra]
 * @returns {Row<P, boolean>}
 */
export const bool = (path, doc, on = false, extra) => ({
  path,
  type: 'bool',
  default: on,
  doc,
  schema: { type: 'boolean' },
  ...extra,
})

/**
 * @template {string} P
 * @param {P} path
 * @param {number} value
 * @param {string} doc
 * @param {Extra} [extra] min is 0 unless stated
 * @returns {Row<P, number>}
 */
export const int = (path, value, doc, { min = 0, max = Number.MAX_SAFE_INTEGER, ...extra } = {}) => ({
  path,
  type: 'int',
  default: value,
  doc,
  schema: { type: 'integer', minimum: min, maximum: max },
  ...extra,
})

/**
 * @template {string} P
 * @param {P} path
 * @param {string} value
 * @param {string} doc
 * @param {Extra} [extra] min is 1 ms unless stated
 * @returns {Row<P, number>} ms
 */
export const duration = (path, value, doc, { min = 1, max = TIMER_MAX, ...extra } = {}) => ({
  ...int(path, 0, doc, { min, max, ...extra }),
  type: 'duration',
  default: value,
})

/**
 * @template {string} P
 * @template {string} [V=string]
 * @param {P} path
 * @param {string} value
 * @param {string} doc
 * @param {Omit<Extra, 'values'> & {values?: readonly V[]}} [extra]
 * @returns {Row<P, V>}
 */
export const string = (path, value, doc, { prefix, ...extra } = {}) => ({
  path,
  type: 'string',
  default: value,
  doc,
  schema: prefix ? { type: 'string', pattern: PATH } : { type: 'string', enum: extra.values },
  ...extra,
})

/**
 * @template {string} P
 * @param {P} path
 * @param {string} doc
 * @param {Extra} [extra]
 * @returns {Row<P, readonly string[]>}
 */
export const strings = (path, doc, extra) => ({
  path,
  type: 'strings',
  default: [],
  doc,
  schema: { type: 'array', items: { type: 'string', enum: extra?.values, minLength: 1 } },
  ...extra,
})

/**
 * A list of strings with at least one entry, or that entry alone.
 * @template {string} P
 * @param {P} path
 * @param {string} value
 * @param {string} doc
 * @param {Extra} [extra]
 * @returns {Row<P, readonly string[]>}
 */
export const oneOrMore = (path, value, doc, extra) => {
  const row = strings(path, doc, extra)
  return { ...row, single: true, default: value, schema: { ...row.schema, minItems: 1 } }
}

/**
 * An object with texts under names of any kind.
 * @template {string} P
 * @param {P} path
 * @param {string} doc
 * @param {Extra} [extra]
 * @returns {Row<P, Readonly<Record<string, string>>>}
 */
export const map = (path, doc, extra) => ({
  path,
  type: 'map',
  default: {},
  doc,
  schema: { type: 'object', values: { type: 'string' } },
  ...extra,
})

/**
 * A list of objects with names of their own.
 * @template {string} P
 * @template {Option} R
 * @param {P} path its last segment is the plural of their noun
 * @param {string} doc
 * @param {readonly R[]} members
 * @returns {Row<P, readonly (Tree<R> & {readonly name: string})[]>}
 */
export const named = (path, doc, members) => ({
  path,
  type: 'members',
  default: [],
  doc,
  schema: { type: 'array' },
  members,
})

/**
 * A list of objects.
 * @template {string} P
 * @template {Record<string, Schema>} const Q
 * @param {P} path
 * @param {string} doc
 * @param {Q} properties
 * @returns {Row<P, readonly {readonly [K in keyof Q]: ValueOf<Q[K]>}[]>}
 */
export const objects = (path, doc, properties) => ({
  path,
  type: 'transforms',
  default: [],
  doc,
  schema: { type: 'array', items: { type: 'object', properties } },
})

/**
 * A list of `{code, to: {...}}`: replacements of a code.
 * @template {string} P
 * @template {Record<string, Schema>} const Q
 * @param {P} path
 * @param {string} doc
 * @param {Q} to fields of `to`
 */
export const transforms = (path, doc, to) =>
  objects(path, doc, { code: { type: 'integer' }, to: { type: 'object', properties: to } })

/** Forms of a certificate or key. */
export const PEM = 'PEM text, base64 of it, or the path of a file.'

/**
 * Of connections that Halley opens.
 * @template {string} B
 * @param {B} block path
 * @param {string} enabled doc of the switch
 * @param {string} peers servers that it is about
 * @param {'address' | 'endpoint'} key of their host
 */
export const clientTls = (block, enabled, peers, key) => [
  bool(`${block}.enabled`, enabled),
  string(`${block}.cert_pem`, '', `Client certificate for ${peers}: ${PEM}`),
  string(`${block}.key_pem`, '', `Key of the client certificate: ${PEM}`, { secret: true }),
  string(
    `${block}.server_ca_pem`,
    '',
    `CA certificates that verify ${peers}: ${PEM} Empty: the CAs of Node.js.`,
  ),
  string(
    `${block}.server_name`,
    '',
    `Name that the certificate must contain. Empty: the host of the ${key}.`,
  ),
  bool(`${block}.insecure_skip_verify`, 'Accept any certificate. For tests only.'),
]
