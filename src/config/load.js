// The configuration of a gateway: a table of options (options.js), read from defaults, a file, variables and flags.
// Result: a deeply frozen tree with every key and durations in ms, or a ConfigError with all faults. A value passes
// file.js -> Draft (which key) -> read.js (type and range) -> check.js (rules over several keys).

import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkRules } from './check.js'
import { ConfigError, Report } from './error.js'
import { readConfigFile } from './file.js'
import { memberLists, optionOfVariable, rootKeys } from './keys.js'
import { options } from './options.js'
import { readServerTls } from './pem.js'
import { readText, readValue } from './read.js'
import { get, parseDuration, put, show } from './values.js'

export { ConfigError }

/** @import { Keys, MemberList } from './keys.js' */
/** @import { Config } from './options.js' */
/** @import { Option } from './options/make.js' */
/** @import { Values } from './values.js' */

/**
 * @typedef {object} Sources
 * @property {string} [file] .json, .yaml or .yml
 * @property {Readonly<Record<string, string | undefined>>} [env] HALLEY_... variables
 * @property {Readonly<Record<string, unknown>>} [flags] key path -> text or value; undefined is unset
 * @property {string} [cwd]
 */

const UNSUPPORTED = 'Centrifugo key that Halley does not support yet; it is ignored'
const RESTRICTS = 'Centrifugo restriction that Halley does not support yet; remove it to start without it'
const NAME = /^[-a-zA-Z0-9_.]{2,}$/
const PREFIX = 'HALLEY_'
/** Variables of other commands. */
const OTHERS = /^HALLEY_(?:FLEET_|ADMIN_KEY$|GENERATED_KEY$)/

/** @param {unknown} value @returns {value is Values} */
const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value)

/** Values that restrict nothing. */
const OFF = /^(?:0[a-zµ]*|false|\[\]|\{\})?$/

/** Whether it restricts; blocks with `enabled: false` do not. @param {unknown} value */
function isOn(value) {
  if (typeof value !== 'object' || value === null) return Boolean(value) && !OFF.test(String(value))
  return !('enabled' in value && value.enabled === false) && Object.values(value).some(isOn)
}

/** Tests check that each default is valid. @param {Option} option */
function defaultOf({ type, single, default: value }) {
  if (type === 'duration') return parseDuration(String(value))
  return single ? [value] : structuredClone(value)
}

/** @param {string} before @param {string} best */
const hint = (before, best) => (best === '' ? '' : `; did you mean ${before}${best}?`)

/** Defaults, overridden by each source in turn. */
class Draft {
  report = new Report()
  /** @type {Values} */
  config = {}
  #folder

  /** @param {string} cwd of relative paths */
  constructor(cwd) {
    this.#folder = cwd
    for (const option of options) put(this.config, option.path, defaultOf(option))
  }

  /** @param {Values} tree of a file @param {string} [folder] of relative paths in it */
  applyTree(tree, folder = this.#folder) {
    const before = this.#folder
    this.#folder = folder
    const { hooks } = tree
    const short = typeof hooks === 'string' || hooks instanceof URL
    this.#walk(rootKeys, short ? { ...tree, hooks: { module: String(hooks) } } : tree, '', this.config)
    this.#folder = before
  }

  /** Empty variables are unset. @param {NonNullable<Sources['env']>} env */
  applyEnv(env) {
    const names = Object.keys(env).filter(name => name.startsWith(PREFIX) && !OTHERS.test(name) && env[name])
    // Lists before options of their members.
    names.sort((a, b) => a.length - b.length || (a < b ? -1 : 1))
    for (const name of names) this.#applyVariable(name, /** @type {string} */ (env[name]))
  }

  /** @param {NonNullable<Sources['flags']>} flags @param {Readonly<Record<string, string>>} labels by key path */
  applyFlags(flags, labels) {
    for (const [path, value] of Object.entries(flags)) {
      const option = rootKeys.option(path)
      if (value === undefined) continue
      if (option === undefined) throw new TypeError(`no option ${path}`)
      const read = () => (typeof value === 'string' ? readText(option, value) : readValue(option, value))
      this.#set(this.config, option, path, labels[path] ?? path, read)
    }
  }

  /**
   * @param {Values} target root of option paths @param {Option} option @param {string} path full @param {string} label
   * @param {() => unknown} read
   */
  #set(target, option, path, label, read) {
    try {
      const value = read()
      put(target, option.path, option.file && value !== '' ? this.#absolute(String(value)) : value)
    } catch (error) {
      this.report.unread.add(path)
      this.report.fault(label + (error.at ?? ''), error.message)
    }
  }

  /** @param {string} path or file: URL */
  #absolute(path) {
    return path.startsWith('file:') ? fileURLToPath(path) : resolve(this.#folder, path)
  }

  /**
   * @param {Keys} keys @param {Values} tree @param {string} base full path of the root of `keys`, with a final dot
   * @param {Values} target @param {string} [section] path below `base`, with a final dot
   */
  #walk(keys, tree, base, target, section = '') {
    for (const [key, value] of Object.entries(tree)) {
      const path = section + key
      const full = base + path
      const option = keys.option(path)
      const members = memberLists.get(full)
      if (members !== undefined) this.#applyMembers(members, value, full)
      else if (option !== undefined) this.#set(target, option, full, full, () => readValue(option, value))
      else if (keys.isRestricting(path) && isOn(value)) this.report.fault(full, RESTRICTS)
      else if (keys.isUnsupported(path)) this.#warnLeaves(full, value)
      else if (!keys.isSection(path)) this.report.fault(full, `unknown key${hint(base, keys.nearest(path))}`)
      else if (isObject(value)) this.#walk(keys, value, base, target, `${path}.`)
      else this.report.fault(full, `${show(value)} is not an object with keys`)
    }
  }

  /** @param {string} path @param {unknown} value */
  #warnLeaves(path, value) {
    const entries = isObject(value) ? Object.entries(value) : []
    for (const [key, below] of entries) this.#warnLeaves(`${path}.${key}`, below)
    if (entries.length === 0) this.report.warn(path, UNSUPPORTED)
  }

  /** @param {MemberList} list @param {unknown} given @param {string} label */
  #applyMembers(list, given, label) {
    const { path } = list.option
    if (!Array.isArray(given)) {
      this.report.unread.add(path)
      return this.report.fault(label, `${show(given)} is not a list of ${list.noun}`)
    }
    const members = given.map((item, i) => this.#member(list, item, `${label}[${i}]`))
    put(this.config, path, members)
    const names = members.map(({ name }) => name)
    for (const [i, name] of names.entries()) {
      if (name !== '' && names.indexOf(name) < i)
        this.report.fault(`${label}[${i}].name`, `${show(name)} is also the name of another ${list.singular}`)
    }
  }

  /** @param {MemberList} list @param {unknown} item @param {string} label @returns {Values & {name: string}} */
  #member(list, item, label) {
    const member = { name: '' }
    for (const option of list.option.members ?? []) put(member, option.path, defaultOf(option))
    if (!isObject(item)) {
      this.report.fault(label, `${show(item)} is not an object with a name and options`)
      return member
    }
    this.#walk(list.keys, item, `${label}.`, member)
    if (!Object.hasOwn(item, 'name')) this.report.fault(`${label}.name`, 'is missing')
    else if (!this.report.unread.has(`${label}.name`) && !NAME.test(member.name)) {
      const text = `${show(member.name)} must be two or more of the characters -a-zA-Z0-9_.`
      this.report.fault(`${label}.name`, text)
    }
    return member
  }

  /** @param {string} name @param {string} text */
  #applyVariable(name, text) {
    const option = optionOfVariable(name === 'HALLEY_HOOKS' ? 'HALLEY_HOOKS_MODULE' : name)
    const list = option && memberLists.get(option.path)
    if (list !== undefined) {
      try {
        this.#applyMembers(list, JSON.parse(text), name)
      } catch {
        this.report.fault(name, `is not a JSON array of ${list.noun}`)
      }
    } else if (option !== undefined) {
      this.#set(this.config, option, option.path, name, () => readText(option, text))
    } else if (!this.#applyMemberVariable(name, text)) {
      this.#unknownVariable(rootKeys, name, PREFIX, text)
    }
  }

  /** @param {Keys} keys @param {string} name @param {string} prefix before a key of `keys` @param {string} text */
  #unknownVariable(keys, name, prefix, text) {
    const rest = name.slice(prefix.length)
    if (!keys.isUnsupportedVariable(rest))
      this.report.fault(name, `unknown variable${hint(prefix, keys.nearestVariable(rest))}`)
    else if (keys.isRestrictingVariable(rest) && isOn(text)) this.report.fault(name, RESTRICTS)
    else this.report.warn(name, UNSUPPORTED)
  }

  /**
   * HALLEY_CHANNEL_NAMESPACES_<NAME>_<OPTION> of an existing namespace, HALLEY_PROXIES_<NAME>_<OPTION> of a proxy ...
   * @param {string} name @param {string} text
   */
  #applyMemberVariable(name, text) {
    const list = [...memberLists.values()].find(candidate => name.startsWith(candidate.prefix()))
    if (list === undefined) return false
    const members = /** @type {(Values & {name: string})[]} */ (get(this.config, list.option.path))
    // `a_b` rather than `a`.
    const [member] = members
      .filter(candidate => name.startsWith(list.prefix(candidate.name)))
      .sort((a, b) => b.name.length - a.name.length)
    if (member === undefined) {
      const names = members.map(candidate => show(candidate.name)).join(', ') || 'none'
      this.report.fault(name, `no ${list.singular} matches this variable (${list.noun}: ${names})`)
      return true
    }
    const prefix = list.prefix(member.name)
    const option = list.optionOfVariable(name.slice(prefix.length))
    if (option === undefined) this.#unknownVariable(list.keys, name, prefix, text)
    else {
      const path = `${list.option.path}[${members.indexOf(member)}].${option.path}`
      this.#set(member, option, path, name, () => readText(option, text))
    }
    return true
  }
}

export const FLAGS = Object.freeze({
  workers: '--workers',
  'http_server.port': '--port',
  'http_server.address': '--address',
  'log.level': '--log-level',
  'hooks.module': '--hooks',
})

/** @template T @param {T} value @returns {T} */
function deepFreeze(value) {
  if (value === null || typeof value !== 'object') return value
  for (const below of Object.values(value)) deepFreeze(below)
  return Object.freeze(value)
}

/**
 * Later sources win: defaults, `base`, file, environment, flags.
 * @param {Sources & {base?: Values}} [sources]
 * @returns {{config: Config, warnings: string[]}} deeply frozen
 * @throws {ConfigError}
 */
export function loadConfig({ file, env = {}, flags = {}, cwd = process.cwd(), base } = {}) {
  const draft = new Draft(cwd)
  if (base !== undefined) draft.applyTree(base)
  if (file !== undefined) {
    const path = resolve(cwd, file)
    draft.applyTree(readConfigFile(path, file), dirname(path))
  }
  draft.applyEnv(env)
  draft.applyFlags(flags, FLAGS)
  const config = /** @type {Config} */ (draft.config)
  readServerTls(config.http_server, draft.report)
  checkRules(config, draft.report)
  const { faults, warnings } = draft.report
  if (faults.length > 0) throw new ConfigError(faults, warnings)
  return { config: deepFreeze(config), warnings }
}
