import { Redis } from 'ioredis'
import { askView } from './cluster-view.js'

/** @typedef {import('./cluster-view.js').ClusterView} ClusterView */

/** How long a server that accepts connections may take (ms). */
const PATIENCE = 2000

/**
 * Asks a server that there is no line to for its view of the cluster.
 * @param {{host: string, port: number}} server
 * @param {import('ioredis').RedisOptions} options
 * @param {(error: Error | null, view: ClusterView | null) => void} done
 * @returns {() => void} gives up, without an answer
 */
export function inquire({ host, port }, options, done) {
  const redis = new Redis({
    ...options,
    host,
    port,
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
    retryStrategy: null,
    connectTimeout: Math.min(options.connectTimeout ?? PATIENCE, PATIENCE),
  })
  /** @type {Error | null} why there is no connection */
  let reason = null
  let ended = false
  const timer = setTimeout(() => end(new Error('it does not answer'), null), PATIENCE)
  const stop = () => {
    ended = true
    clearTimeout(timer)
    redis.disconnect()
  }
  /** @type {typeof done} */
  const end = (error, view) => {
    if (ended) return
    stop()
    done(error && (reason ?? error), view)
  }
  redis.on('error', error => {
    reason = error
  })
  redis.connect().then(
    () =>
      askView(
        (name, args, done) =>
          redis.callBuffer(name, ...args).then(
            reply => done(null, reply),
            error => done(error, null),
          ),
        host,
        (error, view) => end(error, error ? null : view),
      ),
    error => end(error, null),
  )
  return stop
}
