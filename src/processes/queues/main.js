// The queue process of a node, forked by the primary (primary/queue-process.js) if a consumer or republisher is
// enabled: it takes messages from queues and runs them as server API calls, and sends accepted publications to queues.
// It listens to no port and serves no client. This folder assembles the process, without other logic; it may import
// every folder but worker/, primary/ and cli/.
// Messages of the primary: start, prepare, commit, drain (pull no more, finish what runs), end, log, gc. It ends with
// the primary.

import { url as inspectorUrl } from 'node:inspector'
import { NodeInfo } from '../../backends/api/info.js'
import { Publisher } from '../../backends/api/publish.js'
import { Consumers } from '../../backends/queues/consumers.js'
import { clusterOrigin } from '../../backends/queues/origin.js'
import { loadRepublishers, Republishers } from '../../backends/queues/republishers.js'
import { crash, forwardLine, runChild } from '../../base/child-process.js'
import { createLog, LimitedLog, LogOutput, levelOf } from '../../base/log.js'
import { openBus } from '../../channels/broker/bus.js'
import { newEpoch } from '../../channels/broker/epoch.js'
import { createBroker, loadEngine } from '../../channels/broker/index.js'
import { ChannelRules } from '../../clients/auth/channel-rules.js'
import { Source } from '../../config/republish.js'
import { noBatchCounts } from '../../metrics/batch-stats.js'
import { collector } from '../../metrics/heap-trim.js'
import { ProcessSampler, residentMemory } from '../../metrics/process-sample.js'
import { Traffic } from '../../metrics/traffic.js'

/** @import { ApiContext, NodeIdentity } from '../../backends/api/context.js' */
/** @import { BrokerEvents } from '../../channels/broker/contract.js' */

/**
 * @typedef {object} QueuesStart the first message
 * @property {'start'} type @property {any} config @property {number} number of the process, as of a worker
 * @property {NodeIdentity} node
 * @property {boolean} terminal
 * @property {boolean} quiet log lines go to the primary, not to standard output
 * @property {boolean} first the gateway starts: a server out of reach ends it
 */

/** Maximum wait for the engine, ms; then messages are tried until it is there. */
const ENGINE_TIMEOUT_MS = 2000
const SAMPLE_MS = 1000

/**
 * Answers to surveys, which other engines send to this process too: it has no clients and no channels.
 * @param {NodeIdentity} node @returns {BrokerEvents['survey']}
 */
const surveyed = node => op => {
  const { uid, name, version, startedAt } = node
  if (op === 'channels') return {}
  if (op === 'connections') return { node: { uid, name }, worker: -1, total: 0, connections: [] }
  if (op !== 'info') return undefined
  const uptime = Math.max(0, Date.now() - startedAt)
  return { node: { uid, name, version }, uptime, clients: 0, users: [], channels: [], subscriptions: 0 }
}

/** @param {QueuesStart} start */
async function run(start) {
  const { node, number, terminal, quiet, first } = start
  let { config } = start
  let rules = new ChannelRules(config)
  const output = new LogOutput(config.log, terminal)
  output.shown = !quiet
  if (quiet) output.forward = forwardLine
  const fullLog = createLog(config.log, output, { process: 'queues' })
  const log = new LimitedLog(fullLog)
  /** @type {{config: any, rules: ChannelRules} | null} */
  let prepared = null
  // Before anything is awaited: a reload must reach a process that is still starting.
  process.on('message', (/** @type {any} */ { type, id, config: next }) => {
    /** @type {string | null} reason of a refusal */
    let error = null
    if (type === 'prepare') {
      try {
        prepared = { config: next, rules: new ChannelRules(next) }
      } catch (thrown) {
        error = String(thrown?.message ?? thrown)
      }
    } else if (type === 'commit') {
      if (prepared !== null) ({ config, rules } = prepared)
      fullLog.level = levelOf(config.log)
    } else return
    process.send?.({ type: 'switched', id, error })
  })
  const createEngine = await loadEngine(config)
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
    nodeInfo: new NodeInfo(node, broker.control, config.node.info_metrics_aggregate_interval, Date.now),
    traffic,
    logger: log,
  }
  const consumers = new Consumers({ config, api, node: node.uid, origin, log, clock: Date.now })
  const sampler = new ProcessSampler({ log: output })
  const sendSample = () => {
    const counts = {
      ...traffic.drain({ accepts: 0, connects: 0, deliveries: 0 }),
      hooks: {},
      batches: noBatchCounts(),
    }
    const time = Date.now()
    const sample = {
      time,
      process: sampler.sample(),
      counts,
      consumers: consumers.sample(),
      republish: republishers.figures(time),
    }
    republishers.checkFull()
    process.send?.({ type: 'sample', sample, debugged: inspectorUrl() !== undefined })
  }
  setInterval(sendSample, SAMPLE_MS)
  const collect = collector()
  let draining = false
  const drain = async () => {
    if (draining) return
    draining = true
    await consumers.stop()
    sendSample()
    process.send?.({ type: 'drained' })
  }
  const end = async (/** @type {number} */ within) => {
    // An answer over the bus comes after all that the workers have published.
    await new Promise(resolve => broker.local.call('', number, '', resolve))
    await republishers.stop(within)
    log.report()
    sendSample()
    await broker.control.close()
    process.disconnect?.()
  }
  process.on('message', (/** @type {any} */ message) => {
    switch (message.type) {
      case 'drain':
        drain().catch(crash)
        break
      case 'end':
        end(message.within).catch(crash)
        break
      case 'gc':
        collect('major')
        break
      case 'log':
        output.shown = message.shown
        output.forward = message.forward ? forwardLine : null
    }
  })
  await broker.start(ENGINE_TIMEOUT_MS)
  await consumers.start(first)
  process.send?.({ type: 'started', rss: residentMemory() })
}

runChild(run, { code: 0 })
