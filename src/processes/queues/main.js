// The queue process of a node, forked by the primary (primary/queue-process.js) if a consumer or republisher is
// enabled: runs queue messages as server API calls and sends accepted publications to queues. It listens on no port and
// exits with the primary. This folder only assembles the process; it may import every folder except worker/, primary/
// and cli/.

import { NodeInfo } from '../../backends/api/info.js'
import { Publisher } from '../../backends/api/publish.js'
import { Consumers } from '../../backends/queues/consumers.js'
import { clusterOrigin } from '../../backends/queues/messages.js'
import { loadRepublishers, Republishers } from '../../backends/queues/republishers.js'
import { LimitedLog, levelOf } from '../../base/log.js'
import { openBus } from '../../channels/broker/bus.js'
import { newEpoch } from '../../channels/broker/epoch.js'
import { createBroker, loadEngine, loadStatusStore } from '../../channels/broker/index.js'
import { ChannelRules } from '../../clients/auth/channel-rules.js'
import { Source } from '../../config/republish.js'
import { collector } from '../../metrics/heap-trim.js'
import { ProcessSampler, residentMemory } from '../../metrics/process-sample.js'
import { Traffic } from '../../metrics/traffic.js'
import { crash, handle, openLog, runChild, send, sendSample, switchConfig } from '../child.js'

/** @import { ApiContext, NodeIdentity } from '../../backends/api/context.js' */
/** @import { BrokerEvents } from '../../channels/broker/contract.js' */
/** @import { Handlers, QueuesStart, ToQueues } from '../messages.js' */

/** Timeout for the engine, ms; without it, messages are retried. */
const ENGINE_TIMEOUT_MS = 2000
const SAMPLE_MS = 1000

/**
 * Responds to surveys, which other engines also send to this process.
 * @param {NodeIdentity} node
 * @returns {BrokerEvents['survey']}
 */
const surveyed = node => op => {
  const { uid, name, version, startedAt } = node
  if (op === 'channels') return {}
  if (op === 'list_connections') return { node: { uid, name }, worker: -1, total: 0, rows: [] }
  if (op !== 'info') return undefined
  const uptime = Math.max(0, Date.now() - startedAt)
  return { node: { uid, name, version }, uptime, clients: 0, users: [], channels: [], subscriptions: 0 }
}

/** @param {QueuesStart} start */
async function run(start) {
  const { node, number, first } = start
  let { config } = start
  let rules = new ChannelRules(config)
  const { output, log: fullLog } = openLog(start, { process: 'queues' })
  const log = new LimitedLog(fullLog)
  let next = { config, rules }
  switchConfig(
    ({ config }) => {
      next = { config, rules: new ChannelRules(config) }
    },
    () => {
      ;({ config, rules } = next)
      fullLog.level = levelOf(config.log)
    },
  )
  const createEngine = await loadEngine(config)
  const openStatuses = await loadStatusStore(config)
  const destinations = await loadRepublishers(config)
  const { socket, read } = openBus()
  /** @type {BrokerEvents} */
  const events = {
    publication() {},
    presence() {},
    lost() {},
    survey: surveyed(node),
    called: (_request, answer) => answer(''),
    republish: republication => republishers.take(republication),
  }
  const broker = createBroker(createEngine, {
    socket,
    config,
    events,
    node: node.uid,
    worker: number,
    openStatuses,
    log: fullLog,
  })
  const origin = clusterOrigin(config)
  const { republishing } = broker
  const republishers = new Republishers(config, destinations, { origin, ids: newEpoch(), republishing, log })
  read.handle = broker.receive
  republishers.start()
  const traffic = new Traffic([])
  const resolving = { resolve: (/** @type {string} */ channel) => rules.resolve(channel) }
  /** @type {ApiContext} */
  const api = {
    rules: resolving,
    broker,
    publisher: new Publisher(resolving, broker.pubsub, traffic, Source.CONSUMER),
    // The caller would not get the answers.
    requests: null,
    nodeInfo: new NodeInfo(node, broker.control, config.node.info_metrics_aggregate_interval, Date.now),
    traffic,
    logger: log,
  }
  const consumers = new Consumers({ config, api, node: node.uid, origin, log, clock: Date.now })
  const sampler = new ProcessSampler({ log: output })
  const sample = () => {
    const counts = { ...traffic.drain(), maps: broker.maps.counter.drain() }
    const time = Date.now()
    sendSample({
      time,
      process: sampler.sample(),
      counts,
      consumers: consumers.sample(),
      republish: republishers.figures(time),
    })
    republishers.checkFull()
  }
  setInterval(sample, SAMPLE_MS)
  const collect = collector()
  let draining = false
  const drain = async () => {
    if (draining) return
    draining = true
    await consumers.stop()
    sample()
    send({ type: 'drained' })
  }
  const end = async (/** @type {number} */ within) => {
    // A response over the bus follows all publications of the workers.
    await new Promise(resolve => broker.local.call('', number, '', resolve))
    await republishers.stop(within)
    log.report()
    sample()
    await broker.control.close()
    process.disconnect?.()
  }
  /** @type {Partial<Handlers<ToQueues>>} */
  const handlers = {
    drain: () => drain().catch(crash),
    end: ({ within }) => end(within).catch(crash),
    gc: () => collect('major'),
  }
  handle(handlers)
  await broker.start(ENGINE_TIMEOUT_MS)
  await consumers.start(first)
  send({ type: 'started', rss: residentMemory() })
}

runChild(run, { code: 0 })
