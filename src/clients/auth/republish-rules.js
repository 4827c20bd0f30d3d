import { compileGlob } from '../../config/glob.js'
import { enabledRepublishers, SOURCES } from '../../config/republish.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Route } from '../../channels/broker/contract.js' */

/** Maximum cached channels, and characters of each. */
const MAX_CACHED = 10_000
const MAX_NAME = 255
const SPECIAL = /[*?[{\\]/

export class RepublishRules {
  #republishers
  #globs
  /** Channel -> bits of republishers. @type {Map<string, number>} */
  #cache = new Map()
  /** By bits and source. @type {Map<number, Route | null>} */
  #routes = new Map()

  /** @param {Config} config */
  constructor(config) {
    this.#republishers = enabledRepublishers(config)
    this.#globs = this.#republishers.map(({ channels }) =>
      channels.map(glob => /** @type {RegExp} */ (compileGlob(glob))),
    )
  }

  get withMeta() {
    return this.#republishers.some(republisher => republisher.include_meta)
  }

  /**
   * @param {string} namespace '' for channels without one
   * @param {string[]} starts prefixes of its channel names
   */
  of(namespace, starts) {
    let always = 0
    let byGlob = 0
    for (const [i, { namespaces, channels }] of this.#republishers.entries()) {
      if (namespaces.includes(namespace)) always |= 1 << i
      const possible = channels.some(glob => {
        const literal = glob.split(SPECIAL, 1)[0]
        return starts.some(start => literal.startsWith(start) || start.startsWith(literal))
      })
      if (possible) byGlob |= 1 << i
    }
    return (always | byGlob) === 0 ? null : new NamespaceRoutes(this, always, byGlob & ~always)
  }

  /** @param {string} channel @param {number} candidates bits @returns {number} bits */
  matching(channel, candidates) {
    let bits = this.#cache.get(channel)
    if (bits === undefined) {
      bits = 0
      for (const [i, globs] of this.#globs.entries())
        if (globs.some(glob => glob.test(channel))) bits |= 1 << i
      if (channel.length <= MAX_NAME) {
        if (this.#cache.size >= MAX_CACHED) this.#cache.clear()
        this.#cache.set(channel, bits)
      }
    }
    return bits & candidates
  }

  /** @param {number} bits @param {number} source @returns {Route | null} */
  route(bits, source) {
    const key = bits * SOURCES.length + source
    let route = this.#routes.get(key)
    if (route === undefined) this.#routes.set(key, (route = this.#newRoute(bits, source)))
    return route
  }

  /** @param {number} bits @param {number} source */
  #newRoute(bits, source) {
    const route = { to: 0, block: 0, wait: 0, source, withMeta: false }
    for (const [i, republisher] of this.#republishers.entries()) {
      if ((bits & (1 << i)) === 0 || !republisher.sources.includes(SOURCES[source])) continue
      route.to |= 1 << i
      if (republisher.overflow === 'block') route.block |= 1 << i
      if (republisher.required) route.wait = Math.max(route.wait, republisher.required_timeout)
      if (republisher.include_meta) route.withMeta = true
    }
    return route.to === 0 ? null : Object.freeze(route)
  }
}

export class NamespaceRoutes {
  #rules
  #always
  #byGlob

  /** @param {RepublishRules} rules @param {number} always bits @param {number} byGlob bits */
  constructor(rules, always, byGlob) {
    this.#rules = rules
    this.#always = always
    this.#byGlob = byGlob
  }

  /** @param {string} channel @param {number} source of SOURCES */
  route(channel, source) {
    const byGlob = this.#byGlob === 0 ? 0 : this.#rules.matching(channel, this.#byGlob)
    const bits = this.#always | byGlob
    return bits === 0 ? null : this.#rules.route(bits, source)
  }
}
