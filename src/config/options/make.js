// Builders of the option table, a tree like the configuration file. TypeScript derives the type of the configuration
// from the value types of the options.

/**
 * @typedef {'bool' | 'int' | 'duration' | 'string' | 'strings' | 'map' | 'transforms' | 'members'} OptionType
 * @typedef {'live' | 'workers' | 'start'} Change effect of a change on reload: applied in place;
 *   all workers are replaced, one after another; a warning that a restart is required
 */

/**
 * As in JSON Schema. Durations are in ms.
 * @typedef {object} Schema
 * @property {'boolean' | 'integer' | 'string' | 'array' | 'object'} type
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {readonly string[]} [enum]
 * @property {string} [pattern] of a URL path
 * @property {number} [minLength]
 * @property {number} [minItems]
 * @property {number} [maxItems]
 * @property {boolean} [duration] in a file, text like `25s`
 * @property {Schema} [items] of an array
 * @property {Readonly<Record<string, Schema>>} [properties] without a default a property is required
 * @property {Schema} [values] of an object with any keys
 * @property {unknown} [default]
 *
 * @typedef {object} Extra
 * @property {string} [unit] bytes, seconds ...
 * @property {Record<string, string>} [unsupported] unsupported values of Centrifugo, each with a message
 * @property {boolean} [secret] never shown
 * @property {boolean} [file] a path, relative to the configuration file
 * @property {Change} [change] default: that of the tree
 * @property {Change} [mounts] for a live option: effect of setting or emptying it (adds or removes endpoints)
 * @property {boolean} [loadedOnce] for a live option: uws loads it once, so a change replaces the workers
 * @property {boolean} [block] of a proxy block: listed once in docs
 *
 * @typedef {Extra & {min?: number, max?: number}} Range durations in ms
 */

/**
 * An option without its path.
 * @template [V=any]
 * @typedef {Extra & {value?: V, type: OptionType, default: unknown, doc: string, schema: Schema, values?: readonly
 *   string[], single?: boolean, members?: readonly Option[]}} Row `value`: type only; `default`: as in a file; `doc`:
 *   one line; `values`: allowed ones; `single`: a string is a list; `members`: of each object of a list, without `name`
 *
 * @typedef {Row & {path: string, change: Change}} Option `path`: `client.token.hmac_secret_key`
 */

/**
 * The configuration of a tree.
 * @template T
 * @typedef {{readonly [K in keyof T]: T[K] extends Row<infer V> ? V : Tree<T[K]>}} Tree
 */

/**
 * @template S
 * @typedef {S extends {type: 'integer'} ? number : S extends {type: 'boolean'} ? boolean : S extends {type: 'string'}
 *   ? string : S extends {items: infer I} ? readonly ValueOf<I>[] : S extends {properties: infer Q}
 *   ? {readonly [K in keyof Q]: ValueOf<Q[K]>} : never} ValueOf
 */

/** Maximum delay of a Node.js timer, 2^31 - 1 ms; timers with a longer delay fire after 1 ms. */
const TIMER_MAX = 2147483647

/** Starts with a slash, does not end with one. */
const PATH = '^/([^\\s?#*/]+(/[^\\s?#*/]+)*)?$'

/** @param {object} at @returns {at is Row} */
const isRow = at => 'schema' in at

/**
 * @template {object} T
 * @param {T} tree
 * @param {Partial<Row>} extra defaults
 * @returns {T}
 */
export const withFields = (tree, extra) =>
  /** @type {T} */ (
    Object.fromEntries(
      Object.entries(tree).map(([key, at]) => [key, isRow(at) ? { ...extra, ...at } : withFields(at, extra)]),
    )
  )

/** @type {<T extends object>(tree: T) => T} */
export const live = tree => withFields(tree, { change: 'live' })
/** @type {<T extends object>(tree: T) => T} */
export const newWorkers = tree => withFields(tree, { change: 'workers' })
/** @type {<T extends object>(tree: T) => T} */
export const newStart = tree => withFields(tree, { change: 'start' })

/**
 * @param {object} tree of options with `change`
 * @param {string} [base] path, with a final dot
 * @returns {Option[]}
 */
export const flatten = (tree, base = '') =>
  Object.entries(tree).flatMap(([key, at]) =>
    isRow(at)
      ? /** @type {Option} */ (Object.freeze({ ...at, path: base + key }))
      : flatten(at, `${base}${key}.`),
  )

/** @param {string} doc @param {Extra & {default?: boolean}} [extra] @returns {Row<boolean>} */
export const bool = (doc, extra) => ({
  type: 'bool',
  default: false,
  doc,
  schema: { type: 'boolean' },
  ...extra,
})

/** @param {number} value @param {string} doc @param {Range} [extra] min is 0 @returns {Row<number>} */
export const int = (value, doc, { min = 0, max = Number.MAX_SAFE_INTEGER, ...extra } = {}) => ({
  type: 'int',
  default: value,
  doc,
  schema: { type: 'integer', minimum: min, maximum: max },
  ...extra,
})

/** @param {string} value @param {string} doc @param {Range} [extra] min is 1 ms @returns {Row<number>} */
export const duration = (value, doc, { min = 1, max = TIMER_MAX, ...extra } = {}) => ({
  ...int(0, doc, { min, max, ...extra }),
  type: 'duration',
  default: value,
})

/**
 * @template {string} [V=string]
 * @param {string} doc
 * @param {Extra & {default?: NoInfer<V>, values?: readonly V[], prefix?: boolean}} [extra] prefix: URL path of handlers
 * @returns {Row<V>}
 */
export const string = (doc, { prefix, ...extra } = {}) => ({
  type: 'string',
  default: '',
  doc,
  schema: prefix ? { type: 'string', pattern: PATH } : { type: 'string', enum: extra.values },
  ...extra,
})

/**
 * @template {string} [V=string]
 * @param {string} doc
 * @param {Extra & {values?: readonly V[]}} [extra]
 * @returns {Row<readonly V[]>}
 */
export const strings = (doc, extra) => ({
  type: 'strings',
  default: [],
  doc,
  schema: { type: 'array', items: { type: 'string', enum: extra?.values, minLength: 1 } },
  ...extra,
})

/** A list with at least one entry, or a single string. @param {string} doc @param {Extra & {default: string}} extra */
export const oneOrMore = (doc, extra) => {
  const row = strings(doc, extra)
  return { ...row, single: true, schema: { ...row.schema, minItems: 1 } }
}

/** @param {string} doc @param {Extra} [extra] @returns {Row<Readonly<Record<string, string>>>} */
export const map = (doc, extra) => ({
  type: 'map',
  default: {},
  doc,
  schema: { type: 'object', values: { type: 'string' } },
  ...extra,
})

/**
 * A list of named objects. The key is a plural noun.
 * @template {object} T
 * @param {string} doc
 * @param {T} members
 * @returns {Row<readonly (Tree<T> & {readonly name: string})[]>}
 */
export const named = (doc, members) => ({
  type: 'members',
  default: [],
  doc,
  schema: { type: 'array' },
  members: flatten(members),
})

/**
 * @template {Record<string, Schema>} const Q
 * @param {string} doc
 * @param {Q} properties
 * @param {{maxItems?: number}} [limits]
 * @returns {Row<readonly {readonly [K in keyof Q]: ValueOf<Q[K]>}[]>}
 */
export const objects = (doc, properties, { maxItems } = {}) => ({
  type: 'transforms',
  default: [],
  doc,
  schema: { type: 'array', maxItems, items: { type: 'object', properties } },
})

/**
 * An object of objects, with any keys.
 * @template {Record<string, Schema>} const Q
 * @param {string} doc
 * @param {Q} properties
 * @returns {Row<Readonly<Record<string, {readonly [K in keyof Q]: ValueOf<Q[K]>}>>>}
 */
export const objectsByName = (doc, properties) => ({
  type: 'map',
  default: {},
  doc,
  schema: { type: 'object', values: { type: 'object', properties } },
})

/**
 * Replacements of a code: `{code, to: {...}}`.
 * @template {Record<string, Schema>} const Q
 * @param {string} doc
 * @param {Q} to
 */
export const transforms = (doc, to) =>
  objects(doc, { code: { type: 'integer' }, to: { type: 'object', properties: to } })

export const PEM = 'PEM text, base64 of it, or the path of a file.'

/**
 * @param {string} enabled doc of the switch @param {string} peers @param {'address' | 'endpoint'} [key] of their host
 */
export const clientTls = (enabled, peers, key = 'address') => ({
  enabled: bool(enabled),
  cert_pem: string(`Client certificate for ${peers}: ${PEM}`),
  key_pem: string(`Key of the client certificate: ${PEM}`, { secret: true }),
  server_ca_pem: string(`CA certificates that verify ${peers}: ${PEM} Empty: the CAs of Node.js.`),
  server_name: string(`Name that the certificate must contain. Empty: the host of the ${key}.`),
  insecure_skip_verify: bool('Accept any certificate. For tests only.'),
})
