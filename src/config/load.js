// The configuration of a gateway: one table of options (options.js), read from defaults, a file, variables and flags.
// The type `Config` is derived from that table, so `npm run lint` finds a misspelt option.
// It imports nothing from other folders of src/. The primary and the commands load it; workers use single files of it.
// It promises: a deeply frozen tree with every key and durations in ms, or a ConfigError with every fault at once.
// A value passes file.js -> Draft (which key) -> read.js (type and range) -> check.js (rules over several keys).
// profile.js adds the development profile and refuses unsafe exposure; reference.js prints docs/config.md.

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

/** @import { MemberList } from './keys.js' */
/** @import { Config } from './options.js' */
/** @import { Option } from './options/make.js' */

const UNSUPPORTED = 'Centrifugo key that Halley does not support yet; it is ignored'
const RESTRICTS = 'restricts in a way that Halley does not support yet; remove it to start without'
const NAME = /^[-a-zA-Z0-9_.]{2,}$/

/** @param {unknown} value */
const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value)

/** Of a switch, a number, a duration, a list or an object. */
const OFF = /^(?:0[a-zµ]*|false|\[\]|\{\})?$/

/** @param {any} value of a restriction @returns {boolean} whether it restricts; a block with `enabled: false` does not */
function isOn(value) {
  if (typeof value !== 'object' || value === null) return Boolean(value) && !OFF.test(String(value))
  return value.enabled !== false && Object.values(value).some(isOn)
}

/** Tests check that each default is valid. @param {Option} option */
function defaultOf({ type, single, default: value }) {
  if (type === 'duration') return parseDuration(value)
  if (single) return [value]
  return structuredClone(value)
}

/** Variables of Halley's other commands. */
const OTHERS = /^HALLEY_(?:FLEET_|ADMIN_KEY$|GENERATED_KEY$)/

/** A configuration in the making: defaults, overlaid by one source after another. */
class Draft {
  report = new Report()
  /** @type {Record<string, any>} */
  config = {}
  #folder

  /** @param {string} cwd folder of relative paths */
  constructor(cwd) {
    this.#folder = cwd
    for (const option of options) put(this.config, option.path, defaultOf(option))
  }

  /**
   * Applies a file, or a tree of its form.
   * @param {Record<string, unknown>} tree @param {string} [folder] of relative paths in it
   */
  applyTree(tree, folder = this.#folder) {
    const before = this.#folder
    this.#folder = folder
    const { hooks } = tree
    const short = typeof hooks === 'string' || hooks instanceof URL
    this.#walk(rootKeys, short ? { ...tree, hooks: { module: String(hooks) } } : tree, '', this.config)
    this.#folder = before
  }

  /** @param {Readonly<Record<string, string | undefined>>} env only HALLEY_... is read; empty is unset */
  applyEnv(env) {
    const names = Object.keys(env).filter(
      name => name.startsWith('HALLEY_') && !OTHERS.test(name) && env[name],
    )
    // A list comes before single options of its members.
    names.sort((a, b) => a.length - b.length || (a < b ? -1 : 1))
    for (const name of names) this.#applyVariable(name, /** @type {string} */ (env[name]))
  }

  /**
   * @param {Readonly<Record<string, any>>} flags key path -> text or value; undefined is unset
   * @param {Readonly<Record<string, string>>} labels key path -> the flag's name
   */
  applyFlags(flags, labels) {
    for (const [path, value] of Object.entries(flags)) {
      const option = rootKeys.option(path)
      if (value === undefined) continue
      if (option === undefined) throw new TypeError(`no option ${path}`)
      const read = typeof value === 'string' ? readText : readValue
      this.#set(this.config, option, path, labels[path] ?? path, () => read(option, value))
    }
  }

  /**
   * @param {Record<string, any>} target root of option paths @param {Option} option
   * @param {string} path full path, for the rules
   * @param {string} label @param {() => any} read
   */
  #set(target, option, path, label, read) {
    try {
      const value = read()
      put(target, option.path, option.file && value !== '' ? this.#absolute(value) : value)
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
   * @param {typeof rootKeys} keys @param {Record<string, unknown>} tree
   * @param {string} base full path of the root of `keys`, with a final dot @param {Record<string, any>} target
   * @param {string} [section] path below `base`, with a final dot
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
      else if (!keys.isSection(path)) {
        this.report.fault(full, `unknown key${hint(base, keys.nearest(path))}`)
      } else if (isObject(value)) {
        this.#walk(keys, /** @type {Record<string, unknown>} */ (value), base, target, `${path}.`)
      } else this.report.fault(full, `${show(value)} is not an object with keys`)
    }
  }

  /** @param {string} path @param {unknown} value */
  #warnLeaves(path, value) {
    const entries = isObject(value) ? Object.entries(/** @type {object} */ (value)) : []
    for (const [key, below] of entries) this.#warnLeaves(`${path}.${key}`, below)
    if (entries.length === 0) this.report.warn(path, UNSUPPORTED)
  }

  /** @param {MemberList} list @param {unknown} given @param {string} label */
  #applyMembers(list, given, label) {
    const { path } = list.option
    if (!Array.isArray(given)) {
      this.report.unread.add(path)
      this.report.fault(label, `${show(given)} is not a list of ${list.noun}`)
      return
    }
    const members = given.map((item, i) => this.#member(list, item, `${label}[${i}]`))
    put(this.config, path, members)
    const seen = new Set()
    for (const [i, { name }] of members.entries()) {
      if (seen.has(name))
        this.report.fault(`${label}[${i}].name`, `${show(name)} is the name of another ${list.singular} too`)
      if (name !== '') seen.add(name)
    }
  }

  /** @param {MemberList} list @param {unknown} item @param {string} label */
  #member(list, item, label) {
    /** @type {Record<string, any>} */
    const member = { name: '' }
    for (const option of list.option.members ?? []) put(member, option.path, defaultOf(option))
    if (!isObject(item)) {
      this.report.fault(label, `${show(item)} is not an object with a name and options`)
      return member
    }
    this.#walk(list.keys, /** @type {Record<string, unknown>} */ (item), `${label}.`, member)
    if (!Object.hasOwn(/** @type {object} */ (item), 'name')) this.report.fault(`${label}.name`, 'is missing')
    else if (!this.report.unread.has(`${label}.name`) && !NAME.test(member.name)) {
      this.report.fault(
        `${label}.name`,
        `${show(member.name)} must be two or more of the characters -a-zA-Z0-9_.`,
      )
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
    } else if (this.#applyMemberVariable(name, text)) {
      // Applied or reported.
    } else if (rootKeys.isUnsupportedVariable(name.slice('HALLEY_'.length))) {
      this.#unsupportedVariable(rootKeys, name.slice('HALLEY_'.length), name, text)
    } else {
      const best = rootKeys.nearestVariable(name.slice('HALLEY_'.length))
      this.report.fault(name, `unknown variable${hint('HALLEY_', best)}`)
    }
  }

  /** @param {typeof rootKeys} keys @param {string} part of the name @param {string} name @param {string} text */
  #unsupportedVariable(keys, part, name, text) {
    if (keys.isRestrictingVariable(part) && isOn(text)) this.report.fault(name, RESTRICTS)
    else this.report.warn(name, UNSUPPORTED)
  }

  /**
   * HALLEY_CHANNEL_NAMESPACES_<NAME>_<OPTION> of an existing namespace, HALLEY_PROXIES_<NAME>_<OPTION> of a proxy ...
   * @param {string} name @param {string} text @returns {boolean} whether the variable is one of these
   */
  #applyMemberVariable(name, text) {
    const list = [...memberLists.values()].find(candidate => name.startsWith(candidate.prefix()))
    if (list === undefined) return false
    /** @type {Record<string, any>[]} */
    const members = get(this.config, list.option.path)
    // With both `a_b` and `a`, the longer name is meant.
    const index = members.reduce((best, { name: candidate }, i) => {
      const longer = best === -1 || candidate.length > members[best].name.length
      return name.startsWith(list.prefix(candidate)) && longer ? i : best
    }, -1)
    if (index === -1) {
      const names = members.map(member => show(member.name)).join(', ') || 'none'
      this.report.fault(name, `no ${list.singular} has the name in this variable (${list.noun}: ${names})`)
      return true
    }
    const prefix = list.prefix(members[index].name)
    const rest = name.slice(prefix.length)
    const option = list.optionOfVariable(rest)
    if (option !== undefined) {
      const path = `${list.option.path}[${index}].${option.path}`
      this.#set(members[index], option, path, name, () => readText(option, text))
    } else if (list.keys.isUnsupportedVariable(rest)) {
      this.#unsupportedVariable(list.keys, rest, name, text)
    } else {
      const best = list.keys.nearestVariable(rest)
      this.report.fault(name, `unknown variable${hint(prefix, best)}`)
    }
    return true
  }
}

/** @param {string} before @param {string} best '' if none is near */
const hint = (before, best) => (best === '' ? '' : `; the nearest known name is ${before}${best}`)

export const FLAGS = Object.freeze({
  workers: '--workers',
  'http_server.port': '--port',
  'http_server.address': '--address',
  'log.level': '--log-level',
  'hooks.module': '--hooks',
})

/** @template T @param {T} value @returns {T} */
function deepFreeze(value) {
  if (value !== null && typeof value === 'object') {
    for (const below of Object.values(value)) deepFreeze(below)
    Object.freeze(value)
  }
  return value
}

/**
 * Reads the configuration from defaults, `base`, file, environment and flags; later ones win.
 * @param {object} [sources]
 * @param {string} [sources.file] path of a .json, .yaml or .yml file
 * @param {Readonly<Record<string, string | undefined>>} [sources.env] its HALLEY_... variables are used
 * @param {Readonly<Record<string, any>>} [sources.flags] key path -> text or value
 * @param {string} [sources.cwd] base of a relative `file`
 * @param {Record<string, unknown>} [sources.base] a tree like that of a file
 * @returns {{config: Config, warnings: string[]}} the configuration is deeply frozen
 * @throws {ConfigError} with every fault
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
  readServerTls(draft.config.http_server, draft.report)
  const config = /** @type {Config} */ (draft.config)
  checkRules(config, draft.report)
  const { faults, warnings } = draft.report
  if (faults.length > 0) throw new ConfigError(faults, warnings)
  return { config: deepFreeze(config), warnings }
}
