// In-process hooks: each worker loads handlers from an ES module of the application.

import { pathToFileURL } from 'node:url'
import { CapabilitySets, readAllow } from '../../clients/hooks/capabilities.js'
import { CallFailed, isPromise, NO_HANDLERS } from '../../clients/hooks/contract.js'
import { readLabels } from '../../clients/hooks/labels.js'
import { readServerFilter } from '../../clients/protocol/filter.js'
import { bytesPayload, NO_PAYLOAD, textPayload } from '../../clients/protocol/payload.js'
import { HandlerWatch } from './watch.js'

/** @import { CacheEmptyAnswer, ChannelHandlers, ConnectAnswer, Handler, Handlers, MapPublishAnswer, MapRemoveAnswer, Override, PollAnswer, PublishAnswer, RefreshAnswer, RpcAnswer, SubscriptionAnswer } from '../../clients/hooks/contract.js' */
/** @import { HookEvent } from '../../clients/hooks/events.js' */
/** @import { Payload } from '../../clients/protocol/payload.js' */
/** @import { HookSeries, HookStats } from '../../metrics/hook-stats.js' */

// An invalid value fails the call with an error that names it, which clients do not receive.

/** @param {string} message @returns {CallFailed} */
const fault = message => new CallFailed(`the handler returned ${message}`, 'response')

/** @param {any} value @returns {string} */
function show(value) {
  const text = typeof value === 'function' ? 'a function' : String(JSON.stringify(value) ?? value)
  return text.length > 100 ? `${text.slice(0, 100)}...` : text
}

/** @param {any} answer @param {readonly string[]} known */
function checkObject(answer, known) {
  if (answer === null || typeof answer !== 'object' || Array.isArray(answer))
    throw fault(`${show(answer)}: not an object`)
  for (const key of Object.keys(answer))
    if (!known.includes(key)) throw fault(`the unknown field ${key}; known: ${known.join(', ')}`)
}

/** @param {string} type @param {string} expected @returns {(answer: any, name: string) => any} */
const field = (type, expected) => (answer, name) => {
  const value = answer[name]
  if (value !== undefined && typeof value !== type) throw fault(`${name} ${show(value)}: must be ${expected}`)
  return value
}
const bool = field('boolean', 'true or false')
const text = field('string', 'a string')

/** @param {any} value @param {string} name @returns {string} JSON text on one line */
function jsonOf(value, name) {
  let text
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw fault(`${name}: not a JSON value: ${error.message}`)
  }
  if (text === undefined) throw fault(`${name} ${show(value)}: not a JSON value`)
  return text
}

/** @param {any} answer @param {string} name @returns {Payload | undefined} */
function payload(answer, name) {
  const value = answer[name]
  if (value === undefined) return undefined
  // A copy: the application may reuse the memory.
  if (value instanceof Uint8Array) return bytesPayload(Buffer.from(value))
  return textPayload(jsonOf(value, name))
}

/** @param {any} answer @param {string} name @returns {string | undefined} */
const json = (answer, name) => (answer[name] === undefined ? undefined : jsonOf(answer[name], name))

/** @param {any} answer @returns {number | undefined} unix s */
function expireAt({ expireAt: value }) {
  if (value === undefined) return undefined
  const seconds = value instanceof Date ? Math.ceil(value.getTime() / 1000) : value
  if (!Number.isSafeInteger(seconds))
    throw fault(`expireAt ${show(value)}: must be an integer in unix seconds or a Date`)
  if (seconds > 100_000_000_000) throw fault(`expireAt ${seconds}: must be unix seconds, not ms`)
  return seconds
}

const OVERRIDES = Object.freeze({
  presence: 'presence',
  joinLeave: 'join_leave',
  forceRecovery: 'force_recovery',
  forcePositioning: 'force_positioning',
  forcePushJoinLeave: 'force_push_join_leave',
})
const SUBSCRIPTION = Object.freeze([
  'info',
  'data',
  'expireAt',
  'cacheRecover',
  'override',
  'allow',
  'serverTagsFilter',
])

/** @param {any} answer @returns {SubscriptionAnswer} */
function subscription(answer) {
  checkObject(answer, SUBSCRIPTION)
  return {
    info: json(answer, 'info'),
    data: payload(answer, 'data'),
    expireAt: expireAt(answer),
    cacheRecover: bool(answer, 'cacheRecover'),
    override: answer.override === undefined ? undefined : override(answer.override),
    allow: checked(() => readAllow(answer.allow)),
    filter: filterOf(answer),
  }
}

/** @param {any} answer */
const filterOf = ({ serverTagsFilter: filter }) =>
  filter === undefined ? undefined : checked(() => readServerFilter(filter))

/** @template T @param {() => T} read @returns {T} @throws {CallFailed} */
function checked(read) {
  try {
    return read()
  } catch (error) {
    throw fault(`an invalid value: ${error.message}`)
  }
}

/**
 * @param {(answer: any) => any} read @param {CapabilitySets} capabilities
 * @returns {(answer: any) => any} also reads `caps`
 */
const withCaps = (read, capabilities) => answer => {
  const result = read(answer)
  return answer.caps === undefined
    ? result
    : { ...result, caps: checked(() => capabilities.read(answer.caps)) }
}

/** @param {any} given @returns {Override} */
function override(given) {
  checkObject(given, Object.keys(OVERRIDES))
  /** @type {Override} */
  const options = {}
  for (const [name, option] of Object.entries(OVERRIDES)) {
    const on = bool(given, name)
    if (on !== undefined) options[/** @type {keyof Override} */ (option)] = on
  }
  return options
}

/** @param {any} given list of channels, or channel -> options @returns {Map<string, SubscriptionAnswer> | undefined} */
function subscriptions(given) {
  if (given === undefined) return undefined
  const entries = Array.isArray(given) ? given.map(channel => [channel, {}]) : Object.entries(given ?? {})
  /** @type {Map<string, SubscriptionAnswer>} */
  const subs = new Map()
  for (const [channel, options] of entries) {
    if (typeof channel !== 'string' || channel === '')
      throw fault(`subscriptions with ${show(channel)}: not a channel name`)
    subs.set(channel, subscription(options))
  }
  return subs
}

const CONNECT = Object.freeze(['user', 'info', 'data', 'expireAt', 'meta', 'subscriptions', 'caps', 'labels'])
const REFRESH = Object.freeze(['expired', 'expireAt', 'info', 'meta', 'caps'])
const SUB_REFRESH = Object.freeze(['expired', 'expireAt', 'info', 'meta', 'serverTagsFilter'])
const PUBLISH = 'data skipHistory tags idempotencyKey delta version versionEpoch excludeSender'.split(' ')
const MAP_PUBLISH = 'key data streamData keyMode tags idempotencyKey delta version versionEpoch'.split(' ')
const POLL = Object.freeze(['items', 'epoch'])
const POLL_ITEM = Object.freeze(['key', 'data', 'version', 'removed'])
const CACHE_EMPTY = Object.freeze(['populated'])
const MAP_REMOVE = Object.freeze(['key', 'tags', 'idempotencyKey'])
/** In the past for connections and subscriptions: 0 is ambiguous. @type {RefreshAnswer} */
const EXPIRED = Object.freeze({ expireAt: 1 })
const MAX_VERSION = 2n ** 64n - 1n

/** By event. Never called with `null` or `undefined`, except `null` of `rpc`. */
const answers = Object.freeze({
  /** @param {any} answer @returns {ConnectAnswer} */
  connect(answer) {
    checkObject(answer, CONNECT)
    return {
      user: text(answer, 'user'),
      info: json(answer, 'info'),
      data: payload(answer, 'data'),
      expireAt: expireAt(answer),
      meta: json(answer, 'meta'),
      subs: subscriptions(answer.subscriptions),
      labels: checked(() => readLabels(answer.labels)),
    }
  },

  /** @param {any} answer @returns {SubscriptionAnswer} */
  subscribe: answer => subscription(answer),

  /** @param {any} answer @returns {RefreshAnswer} */
  refresh: answer => refreshed(answer, REFRESH),

  /** @param {any} answer @returns {RefreshAnswer} */
  subRefresh: answer => refreshed(answer, SUB_REFRESH),

  /** @param {any} answer @returns {PublishAnswer} */
  publish(answer) {
    checkObject(answer, PUBLISH)
    const excludeSender = bool(answer, 'excludeSender')
    return { ...publication(answer), skipHistory: bool(answer, 'skipHistory'), excludeSender }
  },

  /** @param {any} answer @returns {MapPublishAnswer} */
  mapPublish(answer) {
    checkObject(answer, MAP_PUBLISH)
    const { keyMode } = answer
    if (keyMode !== undefined && keyMode !== 'if_new' && keyMode !== 'if_exists')
      throw fault(`keyMode ${show(keyMode)}: must be if_new or if_exists`)
    const streamData = payload(answer, 'streamData')
    return { ...publication(answer), key: text(answer, 'key'), keyMode, streamData }
  },

  /** @param {any} answer @returns {MapRemoveAnswer} */
  mapRemove(answer) {
    checkObject(answer, MAP_REMOVE)
    const idempotencyKey = text(answer, 'idempotencyKey')
    return { key: text(answer, 'key'), tags: tagsOf(answer), idempotencyKey }
  },

  /** @param {any} answer @returns {PollAnswer} */
  sharedPollRefresh(answer) {
    checkObject(answer, POLL)
    if (!Array.isArray(answer.items)) throw fault(`items ${show(answer.items)}: must be a list`)
    const items = answer.items.map((/** @type {any} */ item) => {
      checkObject(item, POLL_ITEM)
      const key = text(item, 'key') ?? ''
      const version = item.version === undefined ? 0n : versionOf(item.version)
      return {
        key,
        data: payload(item, 'data') ?? NO_PAYLOAD,
        version,
        removed: bool(item, 'removed') ?? false,
      }
    })
    return { items, epoch: text(answer, 'epoch') ?? '' }
  },

  /** @param {any} answer @returns {CacheEmptyAnswer} */
  cacheEmpty(answer) {
    checkObject(answer, CACHE_EMPTY)
    return { populated: bool(answer, 'populated') ?? false }
  },

  /** A method returns its data. @param {any} answer @returns {RpcAnswer} */
  rpc: answer => ({ data: payload({ data: answer }, 'data') }),
})

/** @param {any} answer @param {readonly string[]} known @returns {RefreshAnswer} */
function refreshed(answer, known) {
  checkObject(answer, known)
  // Unlike no result, this skips the proxy.
  if (bool(answer, 'expired')) return EXPIRED
  const [info, meta] = [json(answer, 'info'), json(answer, 'meta')]
  return { expireAt: expireAt(answer) ?? 0, info, meta, filter: filterOf(answer) }
}

/** @param {any} answer @returns {Record<string, string> | undefined} */
function tagsOf({ tags }) {
  if (tags === undefined) return undefined
  const values = tags !== null && typeof tags === 'object' ? Object.values(tags) : [tags]
  if (!values.every(value => typeof value === 'string') || tags === null || typeof tags !== 'object')
    throw fault(`tags ${show(tags)}: must be an object with texts`)
  return values.length === 0 ? undefined : { ...tags }
}

/** @param {any} answer @returns fields of publications of streams and maps */
const publication = answer => ({
  data: payload(answer, 'data'),
  tags: tagsOf(answer),
  idempotencyKey: text(answer, 'idempotencyKey'),
  delta: bool(answer, 'delta'),
  version: answer.version === undefined ? undefined : versionOf(answer.version),
  versionEpoch: text(answer, 'versionEpoch'),
})

/** @param {any} value @returns {bigint} */
function versionOf(value) {
  const whole = typeof value === 'bigint' || Number.isSafeInteger(value)
  const version = whole ? BigInt(value) : -1n
  if (version < 0n || version > MAX_VERSION)
    throw fault(`version ${show(String(value))}: must be a non-negative integer`)
  return version
}

const HANDLERS =
  'connect refresh subscribe subRefresh publish mapPublish mapRemove sharedPollRefresh cacheEmpty channelState rpc disconnected unsubscribed started stopping'
const NAMES = new Set([...HANDLERS.split(' '), 'headers'])

/**
 * `started` calls the module's function and rejects if it fails.
 * @typedef {{handlers: Handlers, started: (gateway: any) => Promise<void>, stopping: () => Promise<void>}} HooksModule
 */

/** @type {HooksModule} */
export const NO_MODULE = Object.freeze({
  handlers: NO_HANDLERS,
  async started() {},
  async stopping() {},
})

/**
 * @param {{module: string, timeout: number}} options absolute path, '' = none; ms
 * @param {{error: (fields: object, message: string) => void}} log @param {HookStats} stats
 * @param {boolean} [watched] whether blocking handlers are reported to the primary
 * @param {CapabilitySets} [capabilities] of the worker
 * @returns {Promise<HooksModule>}
 * @throws {Error} one line: the module does not load or has a wrong export
 */
export async function loadHooks(
  { module: path, timeout },
  log,
  stats,
  watched = false,
  capabilities = new CapabilitySets(),
) {
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
  const handlers = handlersOf(exported, timeout, stats, watch, capabilities)
  if (watched) watch.start(error => log.error({ err: error }, 'detecting blocking hooks failed'))
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
        log.error({ err: error }, 'stopping hook failed')
      }
    },
  }
}

/** @param {any} error anything thrown @returns {string} one line with location */
function lineOf(error) {
  if (!(error instanceof Error)) return String(error)
  const place = /\n\s+at (?:.*\()?(file:[^)\n]+)/.exec(error.stack ?? '')?.[1]
  // The stack of a syntax error starts with its location.
  const syntax = error instanceof SyntaxError ? /^(file:.*:\d+)\n/.exec(error.stack ?? '')?.[1] : undefined
  const at = syntax ?? place
  return `${error.name}: ${error.message}`.replaceAll('\n', ' ') + (at ? ` (${at})` : '')
}

/** @param {Record<string, any>} loaded named exports, or a default export (`defineHooks`) @param {string} path */
function exportsOf(loaded, path) {
  const { default: whole, ...named } = loaded
  const exported = whole !== null && typeof whole === 'object' ? { ...whole, ...named } : named
  for (const [name, value] of Object.entries(exported)) {
    if (!NAMES.has(name)) {
      // Other exports are helpers, unless they are misspelt handlers.
      const meant = [...NAMES].find(known => known.toLowerCase() === name.toLowerCase().replaceAll('_', ''))
      if (meant) throw new Error(`hooks.module: ${path} exports ${name}; the handler is named ${meant}`)
      delete exported[name]
    } else if (name === 'headers') {
      if (!Array.isArray(value) || value.some(header => typeof header !== 'string'))
        throw new Error(`hooks.module: ${path} exports headers, which must be a list of header names`)
    } else if (name === 'rpc' && value !== null && typeof value === 'object') {
      for (const [method, handler] of Object.entries(value))
        if (typeof handler !== 'function')
          throw new Error(`hooks.module: ${path} exports rpc: ${JSON.stringify(method)} is not a function`)
    } else if (typeof value !== 'function') {
      throw new Error(`hooks.module: ${path} exports ${name}, which must be a function`)
    }
  }
  if (Object.keys(exported).length === 0)
    throw new Error(`hooks.module: ${path} exports no handler; known handlers: ${[...NAMES].join(', ')}`)
  return exported
}

/**
 * @param {Record<string, any>} exported @param {number} timeout ms @param {HookStats} stats
 * @param {HandlerWatch} watch @param {CapabilitySets} capabilities
 */
function handlersOf(exported, timeout, stats, watch, capabilities) {
  const { rpc } = exported
  // One series for all methods: names are user-defined.
  const seriesOf = (/** @type {string} */ name) => stats.open('module', name.replace(/\..*/, ''), 'default')
  /**
   * @param {string} name @param {(answer: any, event: any) => any} read @param {Function | undefined} [run]
   * @returns {any} null: not exported
   */
  const handler = (name, read, run = exported[name]) =>
    run === undefined ? null : createHandler(run, read, name, timeout, seriesOf(name), watch)
  /** @type {ChannelHandlers} */
  const channel = Object.freeze({
    subscribe: handler('subscribe', answers.subscribe),
    publish: handler('publish', answers.publish),
    subRefresh: handler('subRefresh', answers.subRefresh),
    mapPublish: handler('mapPublish', answers.mapPublish),
    mapRemove: handler('mapRemove', answers.mapRemove),
    pollRefresh: handler('sharedPollRefresh', answers.sharedPollRefresh),
    cacheEmpty: handler('cacheEmpty', answers.cacheEmpty),
    channelState: listOf(handler('channelState', ignore)),
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
    connect: handler('connect', withCaps(answers.connect, capabilities)),
    connectWithToken: exported.connect !== undefined,
    refresh: handler('refresh', withCaps(answers.refresh, capabilities)),
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
      // `then` of a thenable may not return a promise.
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
