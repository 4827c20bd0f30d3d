import { combine } from '../../backends/hooks/combine.js'
import { createAuth } from '../../clients/auth/index.js'
import { NO_HANDLERS } from '../../clients/hooks/contract.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Auth } from '../../clients/auth/index.js' */
/** @import { TokensOptions } from '../../clients/auth/tokens.js' */
/** @import { Handlers } from '../../clients/hooks/contract.js' */

/** @typedef {Auth & {config: Config, cursorKey: string, handlers: Handlers}} Current `config` is frozen */

/**
 * The configuration of a worker and the parts built from it. A reload has two phases, so that all workers switch
 * together or none does: `prepare` builds the next configuration, `commit` activates it.
 */
export class LiveConfig {
  /** @type {Current} */
  current
  /** @type {Current | null} */
  #next = null
  #tokens
  /** Of the hooks module. @type {Handlers} */
  #hooks = NO_HANDLERS
  #createProxies
  /** Called before a switch; throws if another part rejects the configuration. @type {(config: Config) => void} */
  onPrepare = () => {}
  onCommit = () => {}

  /**
   * @param {Config} config @param {string} cursorKey base64 @param {TokensOptions} tokens
   * @param {(config: Config) => Handlers} createProxies
   * @throws {Error} naming the invalid option
   */
  constructor(config, cursorKey, tokens, createProxies) {
    this.#tokens = tokens
    this.#createProxies = createProxies
    this.current = this.#make(config, cursorKey)
  }

  /** @param {Config} config @param {string} cursorKey @returns {Current} @throws {Error} */
  #make(config, cursorKey) {
    const proxies = this.#createProxies(config)
    try {
      const handlers = combine(this.#hooks, proxies)
      return { config, cursorKey, handlers, ...createAuth(config, this.#tokens, handlers) }
    } catch (error) {
      proxies.close()
      throw error
    }
  }

  /** @param {Handlers} handlers of the loaded hooks module */
  useHooks(handlers) {
    this.#hooks = handlers
    const { current } = this
    this.current = this.#make(current.config, current.cursorKey)
    current.handlers.close()
    if (this.#next !== null) this.prepare(this.#next.config, this.#next.cursorKey)
  }

  /** @param {Config} config @param {string} cursorKey @throws {Error} naming the invalid option; nothing is changed */
  prepare(config, cursorKey) {
    this.#next?.handlers.close()
    this.#next = null
    this.onPrepare(config)
    this.#next = this.#make(config, cursorKey)
  }

  commit() {
    if (this.#next === null) return
    const { handlers: former } = this.current
    this.current = this.#next
    this.#next = null
    this.onCommit()
    if (former !== this.current.handlers) former.close()
  }
}
