// A worker process, forked by the primary (primary/worker-pool.js), in phases: begin, load, assemble, listen. This
// folder only assembles workers. It may import every folder except primary/ and cli/; demo, metrics, admin, event
// proxies and the Redis engine are loaded only if configured. A worker exits when its primary exits.

import { setTimeout as wait } from 'node:timers/promises'
import { createApi } from '../../backends/api/index.js'
import { NodeInfo } from '../../backends/api/info.js'
import { createOperations } from '../../backends/api/operations.js'
import { NO_PARAMS } from '../../backends/api/params.js'
import { Requests } from '../../backends/api/requests.js'
import { runCall } from '../../backends/api/run.js'
import { ServerApi } from '../../backends/api/server-api.js'
import { limitCalls } from '../../backends/api/wire.js'
import { createProxies, loadProxies, noticesOf } from '../../backends/hooks/combine.js'
import { loadHooks } from '../../backends/hooks/module.js'
import { openRecorder } from '../../backends/lifecycle/recorder.js'
import { disconnects } from '../../base/errors.js'
import { LimitedLog, levelOf } from '../../base/log.js'
import { setAlignedInterval, TimerWheel } from '../../base/timers.js'
import { openBus } from '../../channels/broker/bus.js'
import { Denylist } from '../../channels/broker/denylist.js'
import { createBroker, loadEngine, loadRateStore, loadStatusStore } from '../../channels/broker/index.js'
import { Hub } from '../../channels/hub/hub.js'
import { Jwks } from '../../clients/auth/jwks.js'
import { CapabilitySets } from '../../clients/hooks/capabilities.js'
import { observeAll } from '../../clients/hooks/contract.js'
import { JsonCodec } from '../../clients/protocol/json.js'
import { ProtobufCodec } from '../../clients/protocol/protobuf.js'
import { UniJsonCodec } from '../../clients/protocol/uni-json.js'
import { Acks } from '../../clients/session/acks.js'
import { createChannelStates } from '../../clients/session/channel-states.js'
import { methods } from '../../clients/session/commands/index.js'
import { createContext } from '../../clients/session/context.js'
import { Enforcement } from '../../clients/session/denials.js'
import { HookCalls } from '../../clients/session/hook-calls.js'
import { createClientIds, createSessionIds } from '../../clients/session/ids.js'
import { createPollRefresh } from '../../clients/session/poll-refresh.js'
import { pollRulesOf } from '../../clients/session/polls.js'
import { RateLimits } from '../../clients/session/rate-limits.js'
import { ReplyBatch } from '../../clients/session/replies.js'
import { Sessions } from '../../clients/session/sessions.js'
import { UserStatus } from '../../clients/session/user-status.js'
import { Call, Calls } from '../../clients/transport/calls.js'
import { Fanout } from '../../clients/transport/fanout.js'
import { loadTransports, mountTransports } from '../../clients/transport/index.js'
import { REDIS_LIMITS } from '../../config/rate-limits.js'
import { defaultWorkers } from '../../metrics/control-groups.js'
import { collector, HeapTrim, TRIM_TICK_MS } from '../../metrics/heap-trim.js'
import { HookStats } from '../../metrics/hook-stats.js'
import { Overload } from '../../metrics/overload.js'
import { residentMemory } from '../../metrics/process-sample.js'
import { Refusals } from '../../metrics/refusals.js'
import { StatsView } from '../../metrics/stats-view.js'
import { CounterWindow, Traffic } from '../../metrics/traffic.js'
import { WorkerSampler } from '../../metrics/worker-sample.js'
import { crash, handle, openLog, runChild, send, sendSample, switchConfig } from '../child.js'
import { drainWorker, endHooks } from './drain.js'
import { createListener, Servers } from './listen.js'
import { LiveConfig } from './live-config.js'
import { ClientReports, sendConnectionCount } from './reports.js'

/** @import { BrokerEvents } from '../../channels/broker/contract.js' */
/** @import { OpenRateStore } from '../../channels/broker/index.js' */
/** @import { Handlers } from '../../clients/hooks/contract.js' */
/** @import { Config } from '../../config/options.js' */
/** @import { Drain, Handlers as MessageHandlers, ToWorker, WorkerStart } from '../messages.js' */

/** Timer resolution of sessions and polls. */
const TICK_MS = 100
const READY_TICK_MS = 200
const STATUS_TICK_MS = 1000
const DENYLIST_TICK_MS = 1000
/** Timeout for reading the bus before exit, ms. */
const BUS_WAIT_MS = 1000
/** Time for clients to read their close frames, ms. */
const CLOSE_DELAY_MS = 500
/** Time for callers to read the answers of their last requests, ms. */
const REQUEST_MARGIN_MS = 500
/** Timeout for the engine at startup, ms; then the worker serves clients without it. */
const ENGINE_TIMEOUT_MS = 2000

/** For messages that may recur for hours. */
const ONE_A_MINUTE = Object.freeze({ lines: 1 })

/**
 * @typedef {ReturnType<typeof begin>} Begun
 * @typedef {Begun & Awaited<ReturnType<typeof load>>} Loaded
 */

/** @param {WorkerStart} start */
async function run(start) {
  const begun = begin(start)
  const loaded = { ...begun, ...(await load(begun)) }
  const { hooks, servers } = loaded
  const { broker, api, listener } = assemble(loaded)
  // An unreachable engine is retried while clients are served.
  await broker.start(ENGINE_TIMEOUT_MS)
  // From the primary, even while the engine is unreachable.
  await broker.denials.loaded
  // A module may initialize its handlers before the first client.
  const call = limitCalls(async (name, text) => JSON.parse(await runCall(name, text, api.context)))
  await hooks.started(new ServerApi(call))
  // Memory before the first client: after a restart clients reconnect immediately.
  send({ type: 'ready-to-listen', rss: residentMemory() })
  await listener.listen()
  const { name: driver, fallback } = servers.server
  send({ type: 'listening', server: { driver, fallback } })
}

/** Sets up the log and the configuration; reloads work from here on. @param {WorkerStart} start */
function begin(start) {
  const { config, index, keySets, cursorKey } = start
  const { output, log: fullLog } = openLog(start, { worker: index })
  const log = new LimitedLog(fullLog)
  const clock = Date.now
  const jwks = new Jwks({
    known: keySets,
    onKeys: (url, keys) => send({ type: 'jwks', url, keys }),
    onUnreachable: ({ message }, kept) => log.warn({ reason: message, kept }, 'cannot fetch token keys'),
  })
  const hookStats = new HookStats()
  const capabilities = new CapabilitySets()
  const denylist = new Denylist(clock)
  const live = new LiveConfig(config, cursorKey, { jwks, capabilities, denylist }, given =>
    createProxies(given, { stats: hookStats, log, clock, capabilities }),
  )
  /** Loaded when a configuration needs it. @type {{open: OpenRateStore | null}} */
  const rateStore = { open: null }
  const prepare = async (/** @type {ToWorker['prepare']} */ next) => {
    await loadProxies(next.config)
    rateStore.open ??= await loadRateStore(next.config)
    live.prepare(next.config, next.cursorKey)
  }
  switchConfig(prepare, () => live.commit())
  return { start, output, fullLog, log, clock, hookStats, capabilities, denylist, live, rateStore }
}

/** Loads the hooks and the configured optional parts. @param {Begun} begun */
async function load({ start, fullLog, log, hookStats, capabilities, live, rateStore }) {
  const { config, index } = start
  await loadProxies(config)
  const hooks = await loadHooks(config.hooks, log, hookStats, start.watch, capabilities)
  live.useHooks(hooks.handlers)
  if (config.hooks.module !== '')
    rejected = error => log.error({ err: error }, 'unhandled rejection in the hooks module')
  /** Only one worker logs the driver. */
  const logger = {
    error: (/** @type {object} */ fields, /** @type {string} */ message) => log.error(fields, message),
    warn: (/** @type {string} */ message) => (index === 0 ? fullLog.warn(message) : undefined),
    untrusted: (/** @type {object} */ fields, /** @type {string} */ message) => log.warn(fields, message),
  }
  const servers = await Servers.create(config.http_server, logger)
  live.onPrepare = next => servers.prepare(next.http_server)
  const createEngine = await loadEngine(config)
  rateStore.open ??= await loadRateStore(config)
  const openStatuses = await loadStatusStore(config)
  const transports = await loadTransports(config)
  const demo = config.demo.enabled ? await import('../../pages/demo/index.js') : null
  const metricsPage = config.prometheus.enabled ? await import('../../metrics/prometheus/index.js') : null
  const hasAdmin = config.admin.enabled && config.admin.password !== ''
  const admin = hasAdmin ? await import('../../pages/admin/index.js') : null
  return { hooks, servers, createEngine, openStatuses, transports, demo, metricsPage, admin }
}

/**
 * Builds and connects all parts, without `await`: reloads must not find them incomplete.
 * @param {Loaded} loaded
 */
function assemble({ start, output, fullLog, log, clock, hookStats, live, hooks, servers, ...optional }) {
  const { createEngine, denylist, openStatuses, rateStore, transports, demo, metricsPage, admin } = optional
  const { number, index, workers, node } = start
  // Includes reloads since the start.
  const { config } = live.current
  servers.commit(config.http_server)
  fullLog.level = levelOf(config.log)
  const { client } = config
  const bus = openBus()
  /** Filled below. */
  const events = /** @type {BrokerEvents} */ ({})
  const broker = createBroker(createEngine, {
    socket: bus.socket,
    config,
    events,
    node: node.uid,
    worker: number,
    openStatuses,
    log: fullLog,
    denylist,
  })
  const timers = new TimerWheel(TICK_MS, clock)
  const sessions = new Sessions({
    pingInterval: client.ping_interval,
    pongTimeout: client.pong_timeout,
    staleDelay: client.stale_close_delay,
    timers,
    clock,
  })
  const traffic = new Traffic(methods)
  const refusals = new Refusals(traffic, log)
  const fanout = new Fanout(servers.server, traffic, () => live.current.config)
  const hub = new Hub({
    pubsub: broker.pubsub,
    polls: broker.polls,
    fanout,
    readEntry: async (channel, key) => {
      const rules = live.current.rules.resolve(channel)?.mapRules
      if (!rules) return null
      const query = { cursor: '', limit: 1, key, epoch: '', upTo: 0, maxBytes: 0 }
      return (await broker.maps.state(channel, query, rules)).entries[0] ?? null
    },
    forEachSession: visit => sessions.forEach(visit),
    sessions,
    clock,
  })
  hub.batches.use(live.current.rules)
  if (config.channel.targeted_publications) sessions.indexClients()
  const metrics = new CounterWindow(() => ({
    connects: sessions.connects,
    publications_delivered: hub.delivered,
  }))
  const hookCalls = new HookCalls({ timers, clock, log, limits: () => live.current.config.hooks })
  const reports = new ClientReports(send)
  const recorder = openRecorder(start.lifecycle, clock)
  const observers = () =>
    observeAll([recorder, noticesOf(live.current.handlers, hookCalls, clock), reports.observer])
  const rateLimits = new RateLimits({
    timers,
    clock,
    monotonic: () => performance.now(),
    traffic,
    log,
    openStore: ({ client, engine }) => {
      const { redis } = client.rate_limit.redis_user_command
      const open = /** @type {OpenRateStore} */ (rateStore.open)
      return redis.reuse_from_engine
        ? open(engine.redis, 'engine.redis', fullLog)
        : open(redis, REDIS_LIMITS, fullLog)
    },
  })
  const { statuses } = broker
  const userStatus = statuses === null ? null : new UserStatus({ store: statuses, sessions, traffic, log })
  const acks = new Acks(() => context)
  const acksOf = (/** @type {Config} */ { client }) => (client.acks.enabled ? acks : null)
  const context = createContext({
    ...live.current,
    acks: acksOf(config),
    rateLimits: rateLimits.use(config),
    denylist,
    hookCalls,
    lifecycle: observers(),
    userStatus,
    broker,
    hub,
    codecs: { json: new JsonCodec(), protobuf: new ProtobufCodec(), uniJson: new UniJsonCodec() },
    sessions,
    replies: new ReplyBatch(() => live.current.config.client.max_messages_in_frame),
    timers,
    newClientId: createClientIds(),
    newSessionId: createSessionIds(number),
    ...{ node: node.uid, worker: number, index },
    metrics,
    traffic,
    refusals,
    log,
    version: `halley ${node.version}`,
    clock,
  })
  const collect = collector()
  const overload = new Overload({
    maxTick: config.overload.max_tick,
    maxMemory: config.overload.max_memory,
    workersPerCore: workers / defaultWorkers(),
    collect: () => collect('major'),
    onChange(reason, facts) {
      if (reason === null) log.info(facts, 'no longer overloaded: accepting new connections')
      else log.warn({ reason, ...facts }, 'overloaded: refusing new connections')
    },
  })
  const calls = new Calls(log)

  // Transports, server API and pages on the socket servers

  const { server, internal } = servers
  const mountedTransports = mountTransports({ transports, context, server, fanout, calls, workers, overload })
  // A reload replaces the rules: look them up for each call.
  const rules = { resolve: (/** @type {string} */ channel) => context.rules.resolve(channel) }
  const settings = () => context.config.http_api
  const requests = new Requests(broker.control, () => context.config.client.acks, traffic)
  const api = createApi({
    config,
    settings,
    rules,
    broker,
    node,
    traffic,
    refusals,
    logger: log,
    requests,
    clock,
  })
  api.mount(internal, calls)
  calls.on(Call.ACKS, (call, answer) => acks.called(JSON.parse(call.toString()), answer))
  const view = new StatsView(send)
  // Metrics are per node: only this node's workers are surveyed.
  const nodeInfo = new NodeInfo(node, broker.local, config.node.info_metrics_aggregate_interval, clock)
  const nodes = () => broker.control.nodes() || null
  metricsPage?.mountMetrics({ server: internal, config, view, node, nodeInfo, nodes, log })
  /** `ready`: whether all workers listen; `first`: number of the worker in the first slot. */
  const pool = { ready: false, first: 0 }
  admin?.mountAdmin({
    config,
    settings: () => context.config.admin,
    server: internal,
    view,
    context: api.context,
    broker,
    calls,
    version: node.version,
    worker: number,
    counting: () => pool.first,
    clock,
  })
  const listener = createListener(config.http_server, servers, new LimitedLog(fullLog, ONE_A_MINUTE))
  const sampler = new WorkerSampler({
    index,
    sessions,
    hub,
    traffic,
    maps: broker.maps.counter,
    backlogs: [server, ...mountedTransports.backlogs],
    clock,
    overload,
    log: output,
    listener,
    hooks: hookStats,
    onError: error => log.error({ err: error }, 'sample failed'),
  })
  const demoPage = demo?.mountDemo({ context, server, version: node.version, index, sampler })
  if (config.health.enabled) {
    internal.route('GET', config.health.handler_prefix, exchange => {
      const healthy = pool.ready && broker.ready()
      exchange.reply(healthy ? 200 : 503, { 'Content-Type': 'application/json' }, '{}')
    })
  }

  // The broker, the primary, reloads and timers

  const operations = createOperations(context, node)
  const enforcement = new Enforcement(context)
  const ofDemo = demoPage?.operations ?? {}
  /** @type {BrokerEvents} */
  const handled = {
    publication: (channel, publication) => hub.publication(channel, publication),
    presence: (channel, info, joined) => hub.presence(channel, info, joined),
    lost: (channel, offset, epoch) => hub.lost(channel, offset, epoch),
    interrupted: channel => hub.interrupted(channel),
    survey: (op, params, before) =>
      Object.hasOwn(ofDemo, op) ? ofDemo[op](params) : operations(op, params, before),
    executed: then => sessions.afterVisits(then),
    ordersLost: () =>
      sessions.visitInSlices(sessions.everyOpen(), session => session.close(disconnects.stateInvalidated)),
    denied(denials) {
      enforcement.denied(denials)
      mountedTransports.denied()
    },
    pollUpdate: (channel, update) => hub.polls.update(channel, update),
    pollEpoch: (channel, epoch) => hub.polls.setEpoch(channel, epoch),
    refresh: createPollRefresh(context),
    stateAdded: event => recorder?.channelState(event),
    ...createChannelStates(context, (channel, payload, done) =>
      api.context.publisher.publish(channel, payload, NO_PARAMS, done),
    ),
    called: (request, answer) => calls.called(request, answer),
  }
  Object.assign(events, handled)
  bus.read.handle = broker.receive
  calls.on(Call.ECHO, (_request, answer) => answer(''))

  timers.start()
  setAlignedInterval(() => denylist.sweep(), DENYLIST_TICK_MS)
  sampler.start(sendSample)
  const trim = new HeapTrim(collect)
  setAlignedInterval(() => context.config.gc.idle && trim.tick(), TRIM_TICK_MS)
  setInterval(() => metrics.roll(), config.node.info_metrics_aggregate_interval)
  sessions.heartbeat.start()
  if (userStatus !== null) setAlignedInterval(() => userStatus.tick(), STATUS_TICK_MS)
  if (createEngine !== null) {
    let up = true
    setInterval(() => {
      if (broker.ready() === up) return
      up = !up
      send({ type: 'redis', up })
    }, READY_TICK_MS)
  }
  const positionDelay = client.channel_position_check_delay
  if (positionDelay > 0) {
    setInterval(
      () => hub.checkPositions(positionDelay, channel => context.rules.resolve(channel)?.metaTtl ?? 0),
      Math.max(100, Math.min(positionDelay, client.presence_update_interval || positionDelay)),
    )
  }

  const limitChanged = sendConnectionCount(
    sessions,
    () => context.config.client.connection_limit,
    count => send({ type: 'open', count }),
  )
  live.onCommit = () => {
    Object.assign(context, live.current, {
      lifecycle: observers(),
      acks: acksOf(live.current.config),
      rateLimits: rateLimits.use(live.current.config),
    })
    fullLog.level = levelOf(context.config.log)
    hub.batches.use(context.rules)
    if (context.config.channel.targeted_publications) sessions.indexClients()
    hub.polls.reload(channel => {
      const namespace = context.rules.resolve(channel)
      return namespace?.kind === 'shared_poll' ? pollRulesOf(namespace, context.config) : null
    })
    mountedTransports.reload()
    limitChanged()
    servers.commit(context.config.http_server)
  }

  /** Reads all bus frames sent before `drain`: the echo arrives after them. */
  const readBus = () =>
    new Promise(resolve => broker.local.call('', number, Buffer.of(Call.ECHO), () => resolve(null)))
  let draining = false
  const drain = async (/** @type {Drain} */ message) => {
    if (draining) return
    draining = true
    const until = performance.now() + message.within
    setTimeout(() => requests.close(), Math.max(0, message.within - REQUEST_MARGIN_MS))
    listener.stopListening()
    demoPage?.stop()
    await Promise.race([readBus(), wait(Math.min(message.within, BUS_WAIT_MS))])
    const polls = mountedTransports.waiting()
    const some = await drainWorker({ servers: [server, internal], sessions, polls }, message)
    await userStatus?.end()
    await endHooks(hooks, () => sessions.releasing || hookCalls.busy, until)
    log.report()
    reports.flush()
    // The last sample includes these closes: the worker may exit before the next one.
    sendSample(sampler.sample())
    broker.control.close()
    await wait(some || createEngine !== null ? CLOSE_DELAY_MS : 0)
    await recorder?.end()
    process.exit(0)
  }
  /** @type {Partial<MessageHandlers<ToWorker>>} */
  const handlers = {
    drain,
    gc: () => collect('major'),
    stats: message => view.onMessage(message),
    rest: ({ on }) => listener.rest(on),
    otherConnections({ count }) {
      mountedTransports.admission.otherConnections = count
    },
    workers({ ready, first }) {
      pool.ready = ready
      pool.first = first
    },
    reports({ on }) {
      reports.on = on
      context.lifecycle = observers()
    },
  }
  handle(handlers)
  return { broker, api, listener }
}

/** A rejected promise of a hooks module must not disconnect clients. */
let rejected = crash
runChild(run, { code: 1, onRejection: error => rejected(error) })
