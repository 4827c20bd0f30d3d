// Known keys and variables: Halley's own, and those of Centrifugo that Halley does not support yet.

import {
  restrictingChannelOptions,
  restrictingOptions,
  unsupportedChannelOptions,
  unsupportedConsumerOptions,
  unsupportedOptions,
} from './centrifugo.js'
import { nearest } from './nearest.js'
import { live, string } from './options/make.js'
import { envName, NAMESPACES, options } from './options.js'

/** @import { Option } from './options/make.js' */

const ANYTHING = '.*'

/** Key paths, some with everything below them. */
class Keys {
  /** @type {Map<string, Option>} */
  #own
  /** @type {Set<string>} keys and open sections of Centrifugo */
  #unsupported = new Set()
  /** @type {Set<string>} those of them that restrict */
  #restricting
  /** @type {string[]} */
  #open = []
  /** @type {Set<string>} paths with keys below them */
  #sections = new Set()

  /** @param {readonly Option[]} own @param {readonly string[]} unsupported @param {readonly string[]} restricting */
  constructor(own, unsupported, restricting) {
    this.#own = new Map(own.map(option => [option.path, option]))
    this.#restricting = new Set(restricting.map(sectionOf))
    for (const entry of [...unsupported, ...restricting]) {
      const path = sectionOf(entry)
      if (path !== entry) this.#open.push(path)
      this.#unsupported.add(path)
    }
    for (const path of [...this.#own.keys(), ...this.#unsupported]) {
      for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
        this.#sections.add(path.slice(0, dot))
      }
    }
  }

  /** @param {string} path */
  option(path) {
    return this.#own.get(path)
  }

  /** @param {string} path */
  isSection(path) {
    return this.#sections.has(path)
  }

  /** @param {string} path */
  isUnsupported(path) {
    return this.#unsupported.has(path) || this.#open.some(open => path.startsWith(`${open}.`))
  }

  /** @param {string} path of an unsupported key, or of an open section */
  isRestricting(path) {
    return this.#restricting.has(path)
  }

  /** @param {string} path @returns {string} '' if none is near */
  nearest(path) {
    return nearest(path, [...this.#own.keys(), ...this.#sections, ...this.#unsupported])
  }

  /** @param {string} name of a variable, or the part that names the key */
  isUnsupportedVariable(name) {
    for (const path of this.#unsupported) if (variable(path) === name) return true
    return this.#open.some(open => name.startsWith(`${variable(open)}_`))
  }

  /** @param {string} name as for isUnsupportedVariable */
  isRestrictingVariable(name) {
    for (const path of this.#restricting)
      if (variable(path) === name || (this.#open.includes(path) && name.startsWith(`${variable(path)}_`)))
        return true
    return false
  }

  /** @param {string} name as for isUnsupportedVariable @returns {string} '' if none is near */
  nearestVariable(name) {
    return variable(nearest(name, [...this.#own.keys(), ...this.#unsupported]))
  }
}

/** @param {string} entry a path, with `.*` or without @returns {string} */
const sectionOf = entry => (entry.endsWith(ANYTHING) ? entry.slice(0, -ANYTHING.length) : entry)

/** @param {string} path */
const variable = path => path.replace(/[-.]/g, '_').toUpperCase()

export const rootKeys = new Keys(options, unsupportedOptions, restrictingOptions)

/** Of the objects in a list, by its path. @type {Record<string, string[]>} */
const UNSUPPORTED_MEMBERS = { [NAMESPACES]: unsupportedChannelOptions, consumers: unsupportedConsumerOptions }

/** A list of named objects: namespaces, proxies, consumers. */
export class MemberList {
  #byVariable

  /** @param {Option} option */
  constructor(option) {
    const members = option.members ?? []
    this.option = option
    this.noun = option.path.slice(option.path.lastIndexOf('.') + 1)
    this.singular = this.noun.replace(/ies$/, 'y').replace(/s$/, '')
    const unsupported = UNSUPPORTED_MEMBERS[option.path] ?? []
    const restricting = option.path === NAMESPACES ? restrictingChannelOptions : []
    this.keys = new Keys([...live([string('name', '', '')]), ...members], unsupported, restricting)
    this.#byVariable = new Map(members.map(member => [variable(member.path), member]))
  }

  /** @param {string} name of a variable, after the name of the member */
  optionOfVariable(name) {
    return this.#byVariable.get(name)
  }

  /** Prefix of a member's variables; without a name, of all of them. @param {string} [name] */
  prefix(name) {
    return `${envName(this.option.path)}_${name === undefined ? '' : `${variable(name)}_`}`
  }
}

/** By the paths of the lists. @type {Map<string, MemberList>} */
export const memberLists = new Map(
  options.filter(({ members }) => members).map(option => [option.path, new MemberList(option)]),
)

/** @type {Map<string, Option>} */
const byVariable = new Map(options.map(option => [envName(option.path), option]))

/** @param {string} name with HALLEY_ */
export const optionOfVariable = name => byVariable.get(name)
