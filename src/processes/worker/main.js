// A worker process, forked by the primary (primary/worker-pool.js). This folder assembles workers, without other logic:
// main.js builds the parts, connects them and listens; context.js holds those that sessions, transports and API need.
// May import every room but primary/ and cli/; demo, metrics, admin, event proxies and the Redis engine are loaded only
// if configured.
// Messages of the primary: start, workers, elsewhere, rest, prepare, commit, drain, stats, gc, log. A worker ends with
// it.

import { url as inspectorUrl } from 'node:inspector'
import { setTimeout as wait } from 'node:timers/promises'
import { createApi } from '../../backends/api/index.js'
import { NodeInfo } from '../../backends/api/info.js'
import { createOperations } from '../../backends/api/operations.js'
import { limitCalls, runCall } from '../../backends/api/run.js'
import { ServerApi } from '../../backends/api/server-api.js'
import { noticesOf } from '../../backends/hooks/combine.js'
import { createProxies, loadProxies } from '../../backends/hooks/lazy-proxies.js'
import { loadHooks } from '../../backends/hooks/module.js'
import { openRecorder } from '../../backends/lifecycle/recorder.js'
import { setAlignedInterval } from '../../base/aligned-interval.js'
import { crash, forwardLine, runChild } from '../../base/child-process.js'
import { disconnects } from '../../base/errors.js'
import { createLog, LimitedLog, LogOutput, levelOf } from '../../base/log.js'
import { TimerWheel } from '../../base/timer-wheel.js'
import { openBus } from '../../channels/broker/bus.js'
import { createBroker, loadEngine } from '../../channels/broker/index.js'
import { Hub } from '../../channels/hub/hub.js'
import { Jwks } from '../../clients/auth/jwks.js'
import { observeAll } from '../../clients/hooks/contract.js'
import { JsonCodec } from '../../clients/protocol/json.js'
import { ProtobufCodec } from '../../clients/protocol/protobuf.js'
import { UniJsonCodec } from '../../clients/protocol/uni-json.js'
import { methods } from '../../clients/session/commands/index.js'
import { WorkerContext } from '../../clients/session/context.js'
import { HookCalls } from '../../clients/session/hook-calls.js'
import { createClientIds, createSessionIds } from '../../clients/session/ids.js'
import { ReplyBatch } from '../../clients/session/reply-batch.js'
import { Sessions } from '../../clients/session/sessions.js'
import { Call, Calls } from '../../clients/transport/calls.js'
import { Fanout } from '../../clients/transport/fanout.js'
import { loadTransports, mountTransports } from '../../clients/transport/index.js'
import { defaultWorkers } from '../../metrics/control-groups.js'
import { collector, HeapTrim, TRIM_TICK_MS } from '../../metrics/heap-trim.js'
import { HookStats } from '../../metrics/hook-stats.js'
import { Overload } from '../../metrics/overload.js'
import { residentMemory } from '../../metrics/process-sample.js'
import { Refusals } from '../../metrics/refusals.js'
import { StatsView } from '../../metrics/stats-view.js'
import { CounterWindow, Traffic } from '../../metrics/traffic.js'
import { WorkerSampler } from '../../metrics/worker-sample.js'
import { ClientReports } from './client-reports.js'
import { sendConnectionCount } from './connection-count.js'
import { drainWorker, endHooks } from './drain.js'
import { createListener, Servers } from './listen.js'
import { LiveConfig } from './live-config.js'

/** @import { BrokerEvents } from '../../channels/broker/contract.js' */
/** @import { Handlers } from '../../clients/hooks/contract.js' */
/** @import { WorkerStart } from '../messages.js' */

/** Precision of the deadlines of sessions and polls. */
const TICK_MS = 100
const READY_TICK_MS = 200
/** Maximum wait for what the primary has sent before it lets a worker end, ms. */
const BUS_WAIT_MS = 1000
/** Time for clients to read their close frames, ms. */
const CLOSE_DELAY_MS = 500
/** Maximum wait for the engine at the start, ms; then the worker serves clients without it. */
const ENGINE_TIMEOUT_MS = 2000

/** Lines of messages that may repeat for hours. */
const ONE_A_MINUTE = Object.freeze({ lines: 1 })

/** @param {WorkerStart} start */
async function run(start) {
  const { config: given, number, index, workers, node, terminal, quiet } = start
  const output = new LogOutput(given.log, terminal)
  output.shown = !quiet
  if (quiet) output.forward = forwardLine
  const fullLog = createLog(given.log, output, { worker: index })
  const log = new LimitedLog(fullLog)
  const clock = Date.now
  const jwks = new Jwks({
    known: start.keySets,
    onKeys: (url, keys) => process.send?.({ type: 'jwks', url, keys }),
    onUnreachable: ({ message }, kept) =>
      log.warn({ reason: message, kept }, 'token keys could not be fetched'),
  })
  /** @type {Set<string>} claims that were logged */
  const ignored = new Set()
  const onIgnored = (/** @type {string} */ claim) => {
    if (ignored.has(claim)) return
    ignored.add(claim)
    log.warn({ claim }, 'tokens have a claim that is not supported: it is ignored')
  }
  const hookStats = new HookStats()
  const live = new LiveConfig(given, start.cursorKey, { jwks, onIgnored }, config =>
    createProxies(config, { stats: hookStats, log, clock }),
  )
  // Before anything is awaited: a reload must reach a worker that is still starting.
  process.on('message', (/** @type {any} */ message) => switchConfig(live, message))
  await loadProxies(given)
  const hooks = await loadHooks(given.hooks, log, hookStats, start.watch)
  live.useHooks(hooks.handlers)
  if (given.hooks.module !== '')
    rejected = error =>
      log.error({ err: error }, 'a promise of the hooks module was rejected, and nobody handled it')
  /** One worker says which driver is used. */
  const logger = {
    error: (/** @type {object} */ fields, /** @type {string} */ message) => log.error(fields, message),
    warn: (/** @type {string} */ message) => (index === 0 ? fullLog.warn(message) : undefined),
    stranger: (/** @type {object} */ fields, /** @type {string} */ message) => log.warn(fields, message),
  }
  const servers = await Servers.create(given.http_server, logger)
  const { server, internal } = servers
  live.onPrepare = next => servers.prepare(next.http_server)
  const createEngine = await loadEngine(given)
  const transports = await loadTransports(given)
  const demo = given.demo.enabled ? await import('../../pages/demo/index.js') : null
  const metricsPage = given.prometheus.enabled ? await import('../../metrics/prometheus/index.js') : null
  const admin =
    given.admin.enabled && given.admin.password !== '' ? await import('../../pages/admin/index.js') : null
  // No `await` from here until all parts exist: the bus may deliver at any time, and a reload may have come meanwhile.
  const { config } = live.current
  servers.commit(config.http_server)
  fullLog.level = levelOf(config.log)
  const { client } = config
  const { socket, read } = openBus()

  /** @type {Hub} */
  let hub
  /** @type {(op: string, params: any, before?: number) => any} */
  let control
  const calls = new Calls(log)
  /** @type {BrokerEvents} */
  const events = {
    publication: (channel, publication) => hub.publication(channel, publication),
    presence: (channel, info, joined) => hub.presence(channel, info, joined),
    lost: (channel, offset, epoch) => hub.lost(channel, offset, epoch),
    survey: (op, params, before) => control(op, params, before),
    executed: then => sessions.afterVisits(then),
    ordersLost: () =>
      sessions.visitInSlices(sessions.everyOpen(), session => session.close(disconnects.stateInvalidated)),
    called: (request, answer) => calls.called(request, answer),
  }
  const broker = createBroker(createEngine, {
    socket,
    config,
    events,
    node: node.uid,
    worker: number,
    log: fullLog,
  })
  read.handle = broker.receive

  const timers = new TimerWheel(TICK_MS, clock)
  timers.start()
  const sessions = new Sessions({
    pingInterval: client.ping_interval,
    pongTimeout: client.pong_timeout,
    staleDelay: client.stale_close_delay,
    timers,
    clock,
  })
  const traffic = new Traffic(methods)
  const refusals = new Refusals(traffic, log)
  const fanout = new Fanout(server, traffic, () => live.current.config)
  hub = new Hub({ pubsub: broker.pubsub, fanout, forEachSession: visit => sessions.forEach(visit), clock })
  hub.batches.use(live.current.rules)
  const metrics = new CounterWindow(() => ({
    connects: sessions.connects,
    publications_delivered: hub.delivered,
  }))
  const hookCalls = new HookCalls({ timers, clock, log, limits: () => live.current.config.hooks })
  const reports = new ClientReports((message, done) => process.send?.(message, undefined, undefined, done))
  const recorder = openRecorder(start.lifecycle, clock)
  /** @param {Handlers} handlers */
  const observers = handlers =>
    observeAll([recorder, noticesOf(handlers, hookCalls, clock), reports.observer])
  const context = new WorkerContext({
    ...live.current,
    hookCalls,
    lifecycle: observers(live.current.handlers),
    broker,
    hub,
    codecs: { json: new JsonCodec(), protobuf: new ProtobufCodec(), uniJson: new UniJsonCodec() },
    sessions,
    replies: new ReplyBatch(() => live.current.config.client.max_messages_in_frame),
    timers,
    newClientId: createClientIds(),
    newSessionId: createSessionIds(number),
    place: { id: node.uid, worker: number, index },
    metrics,
    traffic,
    refusals,
    log,
    version: `halley ${node.version}`,
    clock,
  })
  control = createOperations(context, node)

  const collect = collector()
  const overload = new Overload({
    maxTick: config.overload.max_tick,
    maxMemory: config.overload.max_memory,
    workersPerCore: workers / defaultWorkers(),
    collect: () => collect('major'),
    onChange(reason, facts) {
      if (reason === null) log.info(facts, 'no longer overloaded: new connections are accepted')
      else log.warn({ reason, ...facts }, 'overloaded: new connections are refused')
    },
  })
  let allListening = false
  /** Number of the worker in the first slot. */
  let firstWorker = 0
  const {
    admission,
    backlogs,
    waiting,
    reload: reloadTransports,
  } = mountTransports({ transports, context, server, fanout, calls, workers, overload })
  // A reload replaces the rules, so the API looks them up for each call.
  const rules = { resolve: (/** @type {string} */ channel) => context.rules.resolve(channel) }
  const settings = () => context.config.http_api
  const api = createApi({ config, settings, rules, broker, node, traffic, refusals, logger: log, clock })
  api.mount(internal, calls)
  const view = new StatsView(message => process.send?.(message))
  // Metrics are per node: only this node's workers are surveyed.
  const nodeInfo = new NodeInfo(node, broker.local, config.node.info_metrics_aggregate_interval, clock)
  const nodes = () => broker.control.nodes() || null
  metricsPage?.mountMetrics({ server: internal, config, view, node, nodeInfo, nodes, log })
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
    counting: () => firstWorker,
    clock,
  })
  const listener = createListener(config.http_server, servers, new LimitedLog(fullLog, ONE_A_MINUTE))
  const sampler = new WorkerSampler({
    index,
    sessions,
    hub,
    traffic,
    backlogs: [server, ...backlogs],
    clock,
    overload,
    log: output,
    listener,
    hooks: hookStats,
    onError: error => log.error({ err: error }, 'sample failed'),
  })
  const sendSample = (/** @type {any} */ sample) =>
    process.send?.({ type: 'sample', sample, debugged: inspectorUrl() !== undefined })
  sampler.start(sendSample)
  let stopDemo = () => {}
  if (demo) {
    const operations = control
    const { operations: own, stop } = demo.mountDemo({
      context,
      server,
      version: node.version,
      index,
      sampler,
    })
    stopDemo = stop
    control = (op, params, before) =>
      Object.hasOwn(own, op) ? own[op](params) : operations(op, params, before)
  }
  if (config.health.enabled) {
    internal.route('GET', config.health.handler_prefix, exchange => {
      const healthy = allListening && broker.ready()
      exchange.reply(healthy ? 200 : 503, { 'Content-Type': 'application/json' }, '{}')
    })
  }

  const trim = new HeapTrim(collect)
  setAlignedInterval(() => context.config.gc.idle && trim.tick(), TRIM_TICK_MS)
  setInterval(() => metrics.roll(), config.node.info_metrics_aggregate_interval)
  sessions.heartbeat.start()
  if (createEngine !== null) {
    let redisUp = true
    setInterval(() => {
      if (broker.ready() === redisUp) return
      redisUp = !redisUp
      process.send?.({ type: 'redis', up: redisUp })
    }, READY_TICK_MS)
  }
  const limitChanged = sendConnectionCount(
    sessions,
    () => context.config.client.connection_limit,
    count => process.send?.({ type: 'open', count }),
  )
  const positionDelay = client.channel_position_check_delay
  if (positionDelay > 0) {
    setInterval(
      () => hub.checkPositions(positionDelay, channel => context.rules.resolve(channel)?.metaTtl ?? 0),
      Math.max(100, Math.min(positionDelay, client.presence_update_interval || positionDelay)),
    )
  }

  calls.on(Call.ECHO, (_request, answer) => answer(''))
  /** Clients get what the primary had sent before it asked this worker to end: the answer comes after it. */
  const readBus = () =>
    new Promise(resolve => broker.local.call('', number, Buffer.of(Call.ECHO), () => resolve(null)))
  let draining = false
  const end = async (/** @type {import('./drain.js').DrainMessage} */ message) => {
    if (draining) return
    draining = true
    const until = performance.now() + message.within
    listener.stopListening()
    stopDemo()
    await Promise.race([readBus(), wait(Math.min(message.within, BUS_WAIT_MS))])
    const some = await drainWorker({ servers: [server, internal], sessions, polls: waiting() }, message)
    await endHooks(hooks, () => sessions.releasing || hookCalls.busy, until)
    log.report()
    reports.flush()
    // The last sample, with the closes just made: the worker may end before the next second.
    sendSample(sampler.sample())
    broker.control.close()
    await wait(some || createEngine !== null ? CLOSE_DELAY_MS : 0)
    await recorder?.end()
    process.exit(0)
  }

  live.onCommit = () => {
    Object.assign(context, live.current, { lifecycle: observers(live.current.handlers) })
    fullLog.level = levelOf(context.config.log)
    hub.batches.use(context.rules)
    reloadTransports()
    limitChanged()
    servers.commit(context.config.http_server)
  }
  process.on('message', (/** @type {any} */ message) => {
    switch (message.type) {
      case 'workers':
        allListening = message.ready
        firstWorker = message.first
        break
      case 'elsewhere':
        admission.elsewhere = message.count
        break
      case 'rest':
        listener.rest(message.on)
        break
      case 'drain':
        end(message)
        break
      case 'stats':
        view.onMessage(message)
        break
      case 'gc':
        collect('major')
        break
      case 'reports':
        reports.on = message.on
        context.lifecycle = observers(live.current.handlers)
        break
      case 'log':
        output.shown = message.shown
        output.forward = message.forward ? forwardLine : null
    }
  })

  // An unreachable engine is connected later, while clients are served.
  await broker.start(ENGINE_TIMEOUT_MS)
  // A module may fetch what its handlers need before the first client.
  await hooks.started(new ServerApi(limitCalls((name, text) => runCall(name, text, api.context))))
  // Report memory before the first client: after a restart clients reconnect at once.
  process.send?.({ type: 'ready-to-listen', rss: residentMemory() })
  await listener.listen()
  process.send?.({ type: 'listening', server: { driver: server.name, fallback: server.fallback } })
}

/**
 * A reload, in two steps (primary/config-switch.js).
 * @param {LiveConfig} live @param {any} message
 */
async function switchConfig(live, { type, id, config, cursorKey }) {
  /** @type {string | null} reason of a refusal */
  let error = null
  if (type === 'prepare') {
    try {
      await loadProxies(config)
      live.prepare(config, cursorKey)
    } catch (thrown) {
      error = String(thrown?.message ?? thrown)
    }
  } else if (type === 'commit') live.commit()
  else return
  process.send?.({ type: 'switched', id, error })
}

/** A module may leave promises behind: that ends no clients. */
let rejected = crash
runChild(run, { code: 1, onRejection: error => rejected(error) })
