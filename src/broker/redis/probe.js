import { setTimeout as sleep } from 'node:timers/promises'
import { formatHostPort } from '../../config/redis-address.js'
import { parseTargets } from './address.js'
import { askView } from './cluster-node.js'
import { Refusal } from './probe-client.js'
import { checkKind, Fault, Loading, refusedCommands, showUser, withClient } from './server-check.js'

// Checks every Redis once before any worker starts: faults appear in one line, not as retries of workers.

/**
 * @typedef {import('./address.js').Target} Target
 * @typedef {import('./server-check.js').Login} Login
 * @typedef {import('../../config/redis-address.js').HostPort} HostPort
 */

const LOADING_POLL = 500
const LOADING_LOG = 10_000

/**
 * @param {Target} target @param {{host?: string, port?: number, path?: string}} where @param {string} label
 * @returns {Login}
 */
const login = ({ options }, { host, port, path }, label) => ({
  label,
  where: { ...(path ? { path } : { host, port }), tls: options.tls },
  user: options.username ?? '',
  password: options.password ?? '',
  keys: 'engine.redis.',
  connectTimeout: Number(options.connectTimeout),
  ioTimeout: Number(options.socketTimeout),
})

/** @param {Target} target @param {HostPort} host of a sentinel @returns {Login} */
const sentinelLogin = ({ options, ...target }, host) => ({
  ...login({ ...target, options }, host, `sentinel at ${formatHostPort(host)}`),
  where: { ...host, tls: options.sentinelTLS },
  user: options.sentinelUsername ?? '',
  password: options.sentinelPassword ?? '',
  keys: 'engine.redis.sentinel_',
})

/**
 * Checks a server of channels.
 * @param {Login} to @param {number} db @param {{name: string, cluster: boolean, sharded: boolean}} partition
 * @returns {Promise<void>}
 */
function checkServer(to, db, partition) {
  return withClient(to, async client => {
    await checkKind(client, to, { cluster: partition.cluster, db })
    const refused = await refusedCommands(client, partition)
    if (refused.length === 0) return
    const begin = partition.name.slice(0, partition.name.lastIndexOf('.') + 1)
    const names = `keys ~${begin}*, topics &${begin}*`
    throw new Fault(`${showUser(to.user)} of ${to.label} lacks permissions: ${refused.join(', ')} (${names})`)
  })
}

/**
 * @template T
 * @param {readonly Promise<T>[]} checks @returns {Promise<T>} the first success in the list
 * @throws {Fault} with all reasons
 * @throws {Loading}
 */
async function firstOf(checks) {
  const results = await Promise.allSettled(checks)
  /** @type {Set<string>} */
  const reasons = new Set()
  /** @type {Loading | null} */
  let loading = null
  for (const result of results) {
    if (result.status === 'fulfilled') return result.value
    if (result.reason instanceof Loading) loading = result.reason
    reasons.add(result.reason.message)
  }
  throw loading ?? new Fault([...reasons].join('; '))
}

/** @param {Target} target @param {HostPort} host @returns {Promise<HostPort>} of the master */
function askSentinel(target, host) {
  const to = sentinelLogin(target, host)
  const name = String(target.options.name)
  return withClient(to, async client => {
    const reply = await client.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name).catch(error => {
      const strange = error instanceof Refusal && /unknown command/i.test(error.message)
      throw strange
        ? new Fault(`redis at ${formatHostPort(host)} is not a sentinel: use the address redis://`)
        : error
    })
    if (reply === null) throw new Fault(`${to.label} knows no master ${JSON.stringify(name)}`)
    return { host: reply[0], port: Number(reply[1]) }
  })
}

/** @param {Target} target @param {string} prefix */
async function checkSentinels(target, prefix) {
  const hosts = /** @type {HostPort[]} */ (target.options.sentinels)
  const master = await firstOf(hosts.map(host => askSentinel(target, host)))
  const to = login(target, master, `redis at ${formatHostPort(master)} (master of ${target.name})`)
  await checkServer(to, target.options.db ?? 0, { name: `${prefix}.probe`, cluster: false, sharded: false })
}

/** @param {Target} target @param {HostPort} host @returns {Promise<import('./cluster-node.js').ClusterView>} */
function askNode(target, host) {
  const to = login(target, host, `redis at ${formatHostPort(host)}`)
  return withClient(to, async client => {
    await checkKind(client, to, { cluster: true, db: 0 })
    return new Promise((resolve, reject) => {
      /** @type {Parameters<typeof askView>[0]} */
      const send = (name, args, done) => {
        client.command(name, ...args).then(
          reply => done(null, reply),
          error => done(error, null),
        )
      }
      askView(send, host.host, (error, view) => (error ? reject(error) : resolve(view)))
    })
  })
}

/** @param {Target} target @param {string} prefix */
async function checkCluster(target, prefix) {
  const seeds = /** @type {HostPort[]} */ (target.nodes)
  const view = await firstOf(seeds.map(host => askNode(target, host)))
  const masters = new Map(
    view.ranges.filter(({ master }) => master.port > 0).map(({ master }) => [formatHostPort(master), master]),
  )
  if (!view.ok || masters.size === 0)
    throw new Fault(`the Redis Cluster at ${target.name} is down: not all of its slots are served`)
  const partition = { name: `${prefix}.{0}.probe`, cluster: true, sharded: view.sharded }
  const checks = [...masters].map(([name, master]) =>
    checkServer(login(target, master, `redis at ${name} (cluster at ${target.name})`), 0, partition),
  )
  for (const result of await Promise.allSettled(checks)) if (result.status === 'rejected') throw result.reason
}

/** @param {Target} target @param {string} prefix @returns {Promise<void>} */
function checkTarget(target, prefix) {
  if (target.kind === 'sentinel') return checkSentinels(target, prefix)
  if (target.kind === 'cluster') return checkCluster(target, prefix)
  const { options, name } = target
  const partition = { name: `${prefix}.probe`, cluster: false, sharded: false }
  return checkServer(login(target, options, `redis at ${name}`), options.db ?? 0, partition)
}

/**
 * Resolves when every configured Redis can be used; waits for servers that are loading their data.
 * @param {Readonly<Record<string, any>>} redis `engine.redis` of the configuration
 * @param {import('pino').Logger} log @returns {Promise<void>}
 * @throws {Error} one line that states the fault, without passwords
 */
export async function probeRedis(redis, log) {
  let targets = parseTargets(redis)
  let loggedAt = 0
  for (;;) {
    const results = await Promise.allSettled(targets.map(target => checkTarget(target, redis.prefix)))
    const reasons = results.flatMap(result => (result.status === 'rejected' ? [result.reason] : []))
    const mistake = reasons.find(reason => !(reason instanceof Loading || reason instanceof Fault))
    if (mistake) throw mistake
    const faults = reasons.filter(reason => reason instanceof Fault).map(({ message }) => message)
    if (faults.length > 0) throw new Error([...new Set(faults)].join('; '))
    if (reasons.length === 0) return
    if (Date.now() - loggedAt >= LOADING_LOG) {
      loggedAt = Date.now()
      log.info({ waiting_for: reasons.map(({ message }) => message) }, 'redis is loading its data')
    }
    targets = targets.filter((_, i) => results[i].status === 'rejected')
    await sleep(LOADING_POLL)
  }
}
