// Hooks in process: the handlers that an ES module of the application exports. Each worker loads the module itself,
// because functions do not cross a fork.

import { pathToFileURL } from 'node:url'
import { isPromise, NO_HANDLERS } from '../../clients/hooks/contract.js'
import { answers } from './module-answers.js'
import { HandlerWatch } from './watch.js'

/** @import { ChannelHandlers, Handler, Handlers } from '../../clients/hooks/contract.js' */
/** @import { HookSeries, HookStats } from '../../metrics/hook-stats.js' */
/** @import { HookEvent } from '../../clients/hooks/events.js' */

/** What a module may export. */
const NAMES = new Set([
  'connect',
  'refresh',
  'subscribe',
  'subRefresh',
  'publish',
  'rpc',
  'disconnected',
  'unsubscribed',
  'started',
  'stopping',
  'headers',
])

/**
 * @typedef {object} HooksModule
 * @property {Handlers} handlers
 * @property {(gateway: any) => Promise<void>} started calls the module's `started`; rejects if that fails
 * @property {() => Promise<void>} stopping
 */

/** @type {HooksModule} */
export const NO_MODULE = Object.freeze({
  handlers: NO_HANDLERS,
  async started() {},
  async stopping() {},
})

/**
 * Loads the module of `hooks.module`.
 * @param {{module: string, timeout: number}} options absolute path, '' = none; ms
 * @param {{error: (fields: object, message: string) => void}} log @param {HookStats} stats
 * @param {boolean} [watched] whether the primary wants to know of handlers that block
 * @returns {Promise<HooksModule>}
 * @throws {Error} one line: the module does not load, or an export is wrong
 */
export async function loadHooks({ module: path, timeout }, log, stats, watched = false) {
  if (path === '') return NO_MODULE
  /** @type {Record<string, any>} */
  let loaded
  try {
    loaded = await import(pathToFileURL(path).href)
  } catch (error) {
    throw new Error(`hooks.module: ${path} does not load: ${lineOf(error)}`)
  }
  const exported = exportsOf(loaded, path)
  const watch = new HandlerWatch()
  const starts = watch.add('started hook')
  const handlers = handlersOf(exported, timeout, stats, watch)
  if (watched) watch.start(error => log.error({ err: error }, 'hooks that block are not named'))
  return {
    handlers,
    async started(gateway) {
      try {
        const caller = watch.begin(starts)
        const begun = exported.started?.(gateway)
        watch.end(caller)
        await begun
      } catch (error) {
        throw new Error(`hooks.module: started() of ${path} failed: ${lineOf(error)}`)
      }
    },
    async stopping() {
      try {
        await exported.stopping?.()
      } catch (error) {
        log.error({ err: error }, 'the stopping hook failed')
      }
    },
  }
}

/** @param {any} error anything thrown @returns {string} with the place, on one line */
function lineOf(error) {
  if (!(error instanceof Error)) return String(error)
  const place = /\n\s+at (?:.*\()?(file:[^)\n]+)/.exec(error.stack ?? '')?.[1]
  // The stack of a syntax error begins with its place.
  const syntax = error instanceof SyntaxError ? /^(file:.*:\d+)\n/.exec(error.stack ?? '')?.[1] : undefined
  const at = syntax ?? place
  return `${error.name}: ${error.message}`.replaceAll('\n', ' ') + (at ? ` (${at})` : '')
}

/**
 * @param {Record<string, any>} loaded @param {string} path
 * @returns {Record<string, any>} its exports: named ones, or the properties of the default export (`defineHooks`)
 */
function exportsOf(loaded, path) {
  const { default: whole, ...named } = loaded
  const exported = whole !== null && typeof whole === 'object' ? { ...whole, ...named } : named
  for (const [name, value] of Object.entries(exported)) {
    if (!NAMES.has(name)) {
      // A helper that the module shares is no mistake; a misspelt handler is.
      const meant = [...NAMES].find(known => known.toLowerCase() === name.toLowerCase().replaceAll('_', ''))
      if (meant) throw new Error(`hooks.module: ${path} exports ${name}; the handler is called ${meant}`)
      delete exported[name]
    } else if (name === 'headers') {
      if (!Array.isArray(value) || value.some(header => typeof header !== 'string'))
        throw new Error(`hooks.module: ${path} exports headers, which must be a list of header names`)
    } else if (name === 'rpc' && value !== null && typeof value === 'object') {
      for (const [method, handler] of Object.entries(value))
        if (typeof handler !== 'function')
          throw new Error(`hooks.module: ${path} exports rpc, whose ${JSON.stringify(method)} is no function`)
    } else if (typeof value !== 'function') {
      throw new Error(`hooks.module: ${path} exports ${name}, which must be a function`)
    }
  }
  if (Object.keys(exported).length === 0)
    throw new Error(`hooks.module: ${path} exports no handler; known ones: ${[...NAMES].join(', ')}`)
  return exported
}

/**
 * @param {Record<string, any>} exported @param {number} timeout ms @param {HookStats} stats
 * @param {HandlerWatch} watch
 * @returns {Handlers}
 */
function handlersOf(exported, timeout, stats, watch) {
  const { rpc } = exported
  // One series for all methods: their names are the application's.
  const seriesOf = (/** @type {string} */ name) => stats.open('module', name.replace(/\..*/, ''), 'default')
  /**
   * @param {string} name @param {(answer: any, event: any) => any} read what it returned -> answer of the contract
   * @param {Function | undefined} [run]
   * @returns {any} the handler; null: not exported
   */
  const handler = (name, read, run = exported[name]) =>
    run === undefined ? null : createHandler(run, read, name, timeout, seriesOf(name), watch)
  /** @type {ChannelHandlers} */
  const channel = Object.freeze({
    subscribe: handler('subscribe', answers.subscribe),
    publish: handler('publish', answers.publish),
    subRefresh: handler('subRefresh', answers.refresh),
  })
  /** @type {Map<string, Handler<any, any>>} */
  const methods = new Map()
  if (typeof rpc === 'object')
    for (const method of Object.keys(rpc))
      methods.set(method, handler(`rpc.${method}`, answers.rpc, rpc[method].bind(rpc)))
  const every = typeof rpc === 'function' ? handler('rpc', answers.rpc) : null
  const headers = Object.freeze(
    (exported.headers ?? []).map((/** @type {string} */ name) => name.toLowerCase()),
  )
  return Object.freeze({
    connect: handler('connect', answers.connect),
    connectWithToken: exported.connect !== undefined,
    refresh: handler('refresh', answers.refresh),
    channel: () => channel,
    rpc: rpc === undefined ? null : (/** @type {string} */ method) => every ?? methods.get(method) ?? null,
    disconnected: listOf(handler('disconnected', ignore)),
    unsubscribed: listOf(handler('unsubscribed', ignore)),
    headers,
    emulatedHeaders: headers,
    allHeaders: exported.connect !== undefined,
    close() {},
  })
}

/** @param {any} handler @returns {readonly any[]} */
const listOf = handler => Object.freeze(handler === null ? [] : [handler])

/** Nobody waits for an answer. */
const ignore = () => null

/**
 * @param {Function} run @param {(answer: any, event: any) => any} read @param {string} name @param {number} timeout ms
 * @param {HookSeries} series @param {HandlerWatch} watch
 * @returns {Handler<HookEvent, any>}
 */
function createHandler(run, read, name, timeout, series, watch) {
  const watched = watch.add(`${name} hook`)
  return {
    name: `${name} hook`,
    timeout,
    call(event) {
      const begun = series.begin()
      const caller = watch.begin(watched)
      let answer
      try {
        answer = run(event)
        if (!isPromise(answer)) return answer === undefined ? null : read(answer, event)
      } finally {
        watch.end(caller)
        if (!isPromise(answer)) series.end(begun)
      }
      watch.waits(watched)
      // A thenable of a library need not return a promise from `then`.
      return Promise.resolve(answer).then(
        (/** @type {any} */ value) => {
          watch.settled(watched)
          series.end(begun)
          return value === undefined ? null : read(value, event)
        },
        (/** @type {any} */ error) => {
          watch.settled(watched)
          series.end(begun)
          throw error
        },
      )
    },
    failed: kind => series.fail(kind),
  }
}
