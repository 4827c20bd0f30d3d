// Keys and variables of Halley, and those of Centrifugo that Halley does not support.

import {
  restrictingChannelOptions,
  restrictingOptions,
  unsupportedChannelOptions,
  unsupportedConsumerOptions,
  unsupportedOptions,
} from './centrifugo.js'
import { nearest } from './nearest.js'
import { flatten, string } from './options/make.js'
import { envName, NAMESPACES, options } from './options.js'

/** @import { Option } from './options/make.js' */

const ANYTHING = '.*'

/** Some paths include everything below them. */
export class Keys {
  /** @type {Map<string, Option>} */
  #own
  /** Keys and open sections of Centrifugo. */
  #unsupported
  #restricting
  /** Sections with any keys. */
  #open
  /** With keys below them. @type {Set<string>} */
  #sections = new Set()

  /** @param {readonly Option[]} own @param {readonly string[]} unsupported @param {readonly string[]} restricting */
  constructor(own, unsupported, restricting) {
    const all = [...unsupported, ...restricting]
    this.#own = new Map(own.map(option => [option.path, option]))
    this.#unsupported = new Set(all.map(sectionOf))
    this.#restricting = new Set(restricting.map(sectionOf))
    this.#open = all.filter(entry => entry.endsWith(ANYTHING)).map(sectionOf)
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

  /** @param {string} path of an unsupported key, or open section */
  isRestricting(path) {
    return this.#restricting.has(path)
  }

  /** '' if none is near. @param {string} path */
  nearest(path) {
    return nearest(path, [...this.#own.keys(), ...this.#sections, ...this.#unsupported])
  }

  /** @param {string} name of a variable, or the part for the key */
  isUnsupportedVariable(name) {
    return (
      [...this.#unsupported].some(path => variable(path) === name) ||
      this.#open.some(open => name.startsWith(`${variable(open)}_`))
    )
  }

  /** @param {string} name */
  isRestrictingVariable(name) {
    return [...this.#restricting].some(
      path => variable(path) === name || (this.#open.includes(path) && name.startsWith(`${variable(path)}_`)),
    )
  }

  /** '' if none is near. @param {string} name */
  nearestVariable(name) {
    return variable(nearest(name, [...this.#own.keys(), ...this.#unsupported]))
  }
}

/** @param {string} entry a path, with or without `.*` */
const sectionOf = entry => (entry.endsWith(ANYTHING) ? entry.slice(0, -ANYTHING.length) : entry)

/** @param {string} path */
const variable = path => path.replace(/[-.]/g, '_').toUpperCase()

export const rootKeys = new Keys(options, unsupportedOptions, restrictingOptions)

/** By path of a list. @type {Record<string, string[]>} */
const UNSUPPORTED_MEMBERS = { [NAMESPACES]: unsupportedChannelOptions, consumers: unsupportedConsumerOptions }

/** Named objects: namespaces, proxies, consumers. */
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
    this.keys = new Keys([...flatten({ name: string('') }), ...members], unsupported, restricting)
    this.#byVariable = new Map(members.map(member => [variable(member.path), member]))
  }

  /** @param {string} name after the name of the member */
  optionOfVariable(name) {
    return this.#byVariable.get(name)
  }

  /** Of a member's variables, or of all members. @param {string} [name] */
  prefix(name) {
    return `${envName(this.option.path)}_${name === undefined ? '' : `${variable(name)}_`}`
  }
}

/** By path. @type {Map<string, MemberList>} */
export const memberLists = new Map(
  options.filter(({ members }) => members).map(option => [option.path, new MemberList(option)]),
)

/** @type {Map<string, Option>} */
const byVariable = new Map(options.map(option => [envName(option.path), option]))

/** @param {string} name with HALLEY_ */
export const optionOfVariable = name => byVariable.get(name)
