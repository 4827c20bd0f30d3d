// A worker process: builds the parts, hands them to each other, listens. Forked by the primary.

import { Socket } from 'node:net'
import { createApi } from '../api/index.js'
import { NodeInfo } from '../api/info.js'
import { createOperations } from '../api/operations.js'
import { createChannelRules } from '../auth/channel-rules.js'
import { createTokens } from '../auth/tokens.js'
import { createBroker, loadEngine } from '../broker/index.js'
import { disconnects } from '../errors.js'
import { Hub } from '../hub/hub.js'
import { createLog, LogOutput } from '../log.js'
import { JsonCodec } from '../protocol/json.js'
import { ProtobufCodec } from '../protocol/protobuf.js'
import { UniJsonCodec } from '../protocol/uni-json.js'
import { createServer } from '../server/index.js'
import { methods } from '../session/commands/index.js'
import { Deadlines } from '../session/deadlines.js'
import { createClientIds, createSessionIds } from '../session/ids.js'
import { ReplyBatch } from '../session/reply-batch.js'
import { Sessions } from '../session/sessions.js'
import { collector, HeapTrim, TRIM_TICK_MS } from '../stats/heap-trim.js'
import { StatsView } from '../stats/stats-view.js'
import { CounterWindow, Traffic } from '../stats/traffic.js'
import { WorkerSampler } from '../stats/worker-sample.js'
import { Calls } from '../transport/calls.js'
import { Fanout } from '../transport/fanout.js'
import { mountTransports } from '../transport/index.js'
import { WorkerContext } from './context.js'

/** The descriptor that the primary opens for the bus. */
const BUS_FD = 4
const BUS_READ_SIZE = 256 * 1024
const TICK_MS = 200
/** How long clients have to read their close frames before the worker ends, ms. */
const CLOSE_PATIENCE_MS = 500
/** How long a starting worker waits for its engine before it serves clients without, ms. */
const ENGINE_PATIENCE_MS = 2000

/**
 * The way to the primary's broker. Reading into one buffer again and again spares an allocation for each read.
 * @returns {{socket: Socket, read: {handle: (chunk: Buffer) => void}}}
 */
function openBus() {
  const read = { handle: (/** @type {Buffer} */ _chunk) => {} }
  const buffer = Buffer.allocUnsafeSlow(BUS_READ_SIZE)
  const socket = new Socket(
    /** @type {any} */ ({
      fd: BUS_FD,
      readable: true,
      writable: true,
      onread: {
        buffer,
        callback(/** @type {number} */ length) {
          read.handle(buffer.subarray(0, length))
          return true
        },
      },
    }),
  )
  return { socket, read }
}

/**
 * @param {import('../primary/worker-pool.js').WorkerStart} start
 */
async function run({ config, index, workers, node, terminal, quiet, cursorKey }) {
  const output = new LogOutput(config.log, terminal)
  output.shown = !quiet
  if (quiet) output.forward = forwardLine
  const log = createLog(config.log, output, { worker: index })
  const clock = Date.now
  const { client } = config
  const server = await createServer({
    driver: config.http_server.driver,
    logger: index === 0 ? log : undefined,
  })
  // What is not for clients has a port of its own where one is named, and shares theirs where none is.
  const internal =
    config.http_server.internal_port === 0
      ? server
      : await createServer({ driver: server.name, logger: index === 0 ? log : undefined })
  const createEngine = await loadEngine(config)
  const demo = config.demo.enabled ? await import('../demo/index.js') : null
  const metricsPage = config.prometheus.enabled ? await import('../metrics/index.js') : null
  const admin =
    config.admin.enabled && config.admin.password !== '' ? await import('../admin/index.js') : null
  // From here to `listen` nothing waits: what the bus brings finds every part in its place.
  const { socket, read } = openBus()

  /** @type {Hub} */
  let hub
  /** @type {(op: string, params: any) => any} */
  let control
  const calls = new Calls(log)
  /** @type {import('../broker/contract.js').BrokerEvents} */
  const events = {
    publication: (channel, publication) => hub.publication(channel, publication),
    presence: (channel, info, joined) => hub.presence(channel, info, joined),
    lost: (channel, offset, epoch) => hub.lost(channel, offset, epoch),
    survey: (op, params) => control(op, params),
    called: (request, answer) => calls.called(request, answer),
  }
  const broker = createBroker(createEngine, { socket, config, events, node: node.uid, worker: index, log })
  read.handle = broker.receive

  const sessions = new Sessions({
    pingInterval: client.ping_interval,
    pongTimeout: client.pong_timeout,
    staleDelay: client.stale_close_delay,
    clock,
  })
  const deadlines = new Deadlines()
  const traffic = new Traffic(methods)
  const fanout = new Fanout(server, traffic)
  hub = new Hub({ pubsub: broker.pubsub, fanout, forEachSession: visit => sessions.forEach(visit), clock })
  const tokenOptions = {
    onUnreachable: (/** @type {Error} */ error) =>
      log.warn({ err: error }, 'token keys could not be fetched'),
  }
  const metrics = new CounterWindow(() => ({
    connects: sessions.connects,
    publications_delivered: hub.delivered,
  }))
  const context = new WorkerContext({
    config,
    rules: createChannelRules(config),
    tokens: createTokens(config, tokenOptions),
    broker,
    hub,
    codecs: { json: new JsonCodec(), protobuf: new ProtobufCodec(), uniJson: new UniJsonCodec() },
    sessions,
    replies: new ReplyBatch(),
    deadlines,
    newClientId: createClientIds(),
    newSessionId: createSessionIds(index),
    place: { id: node.uid, worker: index },
    metrics,
    traffic,
    log,
    version: `halley ${node.version}`,
    clock,
  })
  control = createOperations(context, node)

  let allListening = false
  const {
    admission,
    backlogs,
    shutDown: endPolls,
  } = mountTransports({
    context,
    server,
    fanout,
    calls,
    workers,
    cursorKey,
  })
  // Rules change with the configuration file, so the API asks for them each time.
  const rules = { resolve: (/** @type {string} */ channel) => context.rules.resolve(channel) }
  const api = createApi({ config, rules, broker, node, traffic, logger: log, clock })
  api.mount(internal)
  const view = new StatsView(message => process.send?.(message))
  // Each node tells of itself, so nobody else's workers are asked.
  const nodeInfo = new NodeInfo(node, broker.local, config.node.info_metrics_aggregate_interval, clock)
  const nodes = () => broker.control.nodes() || null
  metricsPage?.mountMetrics({ server: internal, config, view, node, nodeInfo, nodes, log })
  const { version } = node
  admin?.mountAdmin({
    config,
    server: internal,
    view,
    context: api.context,
    broker,
    calls,
    version,
    index,
    clock,
  })
  const sampler = new WorkerSampler({ index, sessions, hub, traffic, backlogs: [server, ...backlogs], clock })
  const tellSample = (/** @type {any} */ sample) => process.send?.({ type: 'sample', sample })
  sampler.start(tellSample)
  if (demo) {
    const operations = control
    const own = demo.mountDemo({ context, server, version: node.version, index, sampler })
    control = (op, params) => (Object.hasOwn(own, op) ? own[op](params) : operations(op, params))
  }
  if (config.health.enabled) {
    internal.route('GET', config.health.handler_prefix, exchange => {
      const healthy = allListening && broker.ready()
      exchange.reply(healthy ? 200 : 503, { 'Content-Type': 'application/json' }, '{}')
    })
  }

  const collect = collector()
  if (config.gc.idle) {
    const trim = new HeapTrim(collect)
    setInterval(() => trim.tick(), TRIM_TICK_MS)
  }
  setInterval(() => metrics.roll(), config.node.info_metrics_aggregate_interval)
  setInterval(() => sessions.heartbeat.tick(), sessions.heartbeat.tickMs)
  let reportedOpen = 0
  let redisUp = true
  setInterval(() => {
    const now = clock()
    deadlines.tick(now)
    sessions.closeStale(now)
    if (createEngine === null || broker.ready() === redisUp) return
    redisUp = !redisUp
    process.send?.({ type: 'redis', up: redisUp })
  }, TICK_MS)
  if (client.connection_limit > 0) {
    setInterval(() => {
      if (sessions.open === reportedOpen) return
      reportedOpen = sessions.open
      process.send?.({ type: 'open', count: reportedOpen })
    }, 20)
  }
  const positionDelay = client.channel_position_check_delay
  if (positionDelay > 0) {
    setInterval(
      () => hub.checkPositions(positionDelay, channel => context.rules.resolve(channel)?.metaTtl ?? 0),
      Math.max(100, Math.min(positionDelay, client.presence_update_interval || positionDelay)),
    )
  }

  function shutDown() {
    server.stopListening()
    if (internal !== server) internal.stopListening()
    const open = sessions.everyOpen()
    for (const session of open) session.close(disconnects.shutdown)
    endPolls()
    // It may end before its next second: all of them have been told that they have to go.
    tellSample(sampler.sample())
    broker.control.close()
    // Polls without a session, or of other workers' sessions, may wait here, too.
    const awaited = open.length > 0 || config.poll.enabled || config.uni_poll.enabled || createEngine !== null
    setTimeout(() => process.exit(0), awaited ? CLOSE_PATIENCE_MS : 0)
  }

  process.on('message', (/** @type {any} */ message) => {
    switch (message.type) {
      case 'workers':
        allListening = message.ready
        break
      case 'elsewhere':
        admission.elsewhere = message.count
        break
      case 'reload':
        context.config = message.config
        context.rules = createChannelRules(message.config)
        context.tokens = createTokens(message.config, tokenOptions)
        break
      case 'shutdown':
        shutDown()
        break
      case 'stats':
        view.onMessage(message)
        break
      case 'gc':
        collect('major')
        break
      case 'log':
        output.shown = message.shown
        output.forward = message.forward ? forwardLine : null
    }
  })

  // An engine that is out of reach for longer is connected while clients are served.
  await broker.start(ENGINE_PATIENCE_MS)
  const { address, port, internal_address, internal_port } = config.http_server
  const host = address || '0.0.0.0'
  // What it takes without clients: those of a gateway that was restarted are here at once.
  process.send?.({ type: 'ready-to-listen', rss: process.memoryUsage.rss() })
  await server.listen(host, port)
  if (internal !== server) await internal.listen(internal_address || host, internal_port)
  process.send?.({ type: 'listening', driver: server.name })
}

/** A log line for those who read along in the primary. @param {string} line */
const forwardLine = line => process.send?.({ type: 'log', line })

/**
 * Ends the worker.
 * @param {string} message the reason, which the primary logs
 */
function fail(message) {
  process.send?.({ type: 'failed', message }, undefined, undefined, () => process.exit(1))
}

/** @param {unknown} error a fault of ours: where it happened is worth a stack */
const crash = error => fail((error instanceof Error && error.stack) || String(error))

// The primary decides when a worker ends; a terminal sends its signals to all of the group.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
process.on('SIGHUP', () => {})
// Without a primary there is no broker and nobody to be replaced by.
process.on('disconnect', () => process.exit(1))
process.on('uncaughtException', crash)
process.on('unhandledRejection', crash)
process.on('message', (/** @type {any} */ message) => {
  if (message.type !== 'start') return
  run(message).catch(error => fail(error.message))
})
process.send?.({ type: 'ready' })
