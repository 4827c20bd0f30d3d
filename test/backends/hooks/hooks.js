// The hooks module of module.test.js: the data of the client determines what each handler does.

import { defineHooks, disconnect, reject } from '../../../src/backends/hooks/index.js'

const wait = ms => new Promise(resolve => setTimeout(resolve, ms))
const never = () => new Promise(() => {})

export const headers = ['X-Kept']

/** Values other than errors that a promise may reject with or a handler may throw. */
const NOTHINGS = { undefined: undefined, null: null, zero: 0, text: '', false: false, NaN: NaN }

function fail({ throws, rejects }) {
  if (throws !== undefined) throw NOTHINGS[throws]
  return Promise.reject(NOTHINGS[rejects])
}

/** Lines for the test; the worker's standard output is the gateway's. @param {string} event @param {object} fields */
const report = (event, fields) => console.log(JSON.stringify({ msg: `hook ${event}`, ...fields }))

export default defineHooks({
  connect(event) {
    const { as, answer, refuse, throws, later, nothing } = event.data ?? {}
    if (nothing) return fail(nothing)
    if (refuse)
      throw refuse.reason ? disconnect(refuse.code, refuse.reason) : reject(refuse.code, refuse.message)
    if (throws) throw new Error('connect is broken')
    if (as === undefined) return undefined
    const given = {
      user: as,
      info: { name: as },
      meta: { from: event.headers['x-kept'] ?? 'nowhere', all: event.headers['x-other'] ?? 'none' },
      data: { client: event.client, token: event.token?.user ?? null, transport: event.transport },
      ...answer,
    }
    return later ? wait(later).then(() => given) : given
  },

  refresh: event =>
    event.user === 'staying' ? { expireAt: Math.floor(Date.now() / 1000) + 1000 } : undefined,

  subRefresh: event => (event.channel === 'kept' ? { expireAt: 0 } : undefined),

  subscribe(event) {
    const { channel, data } = event
    if (data?.nothing) return fail(data.nothing)
    if (channel === 'closed') throw reject(4000, 'closed today')
    if (channel === 'thrown out') throw disconnect(4400, 'thrown out')
    if (channel.startsWith('rules')) return undefined
    if (channel === 'wrong') return { info: 1, nonsense: true }
    return {
      data: { allowed: event.allowed, said: data ?? null },
      info: { role: 'guest' },
      override: { presence: true },
      ...data?.grant,
    }
  },

  publish(event) {
    const { data, channel } = event
    if (data?.nothing) return fail(data.nothing)
    if (data?.bad) throw reject(4001, 'mind your words')
    if (data?.slow) return wait(data.slow).then(() => ({ data: { after: data.slow } }))
    if (data?.alone) return { excludeSender: true }
    if (data?.upper) return { data: { text: data.upper.toUpperCase() }, tags: { by: event.user } }
    return channel === 'free' ? {} : undefined
  },

  rpc: {
    echo: event => event.data,
    who: event => ({ user: event.user, meta: event.meta, kept: event.headers, client: event.client }),
    nothing() {},
    fails: event => fail(event.data),
    slow: async event => {
      await wait(event.data)
      return { waited: event.data }
    },
    never,
    bytes: () => Buffer.from([1, 2, 3]),
    leak: () => {
      Promise.reject(new Error('nobody waits for it'))
      return 'left'
    },
    string: () => {
      throw 'only a string'
    },
    circular: () => {
      const value = {}
      value.self = value
      return value
    },
    aborted: async event => {
      report('called', { client: event.client })
      await new Promise(resolve => event.signal.addEventListener('abort', resolve))
      report('aborted', { reason: event.signal.reason.message })
    },
  },

  disconnected({ client, user, code, reason, channels, duration, meta }) {
    report('disconnected', { client, user, code, reason, channels, timed: duration >= 0, meta })
  },

  unsubscribed({ client, channel, code }) {
    report('unsubscribed', { client, channel, code })
  },

  started(gateway) {
    gateway.publish('started', { pid: process.pid }).then(
      position => report('started', { position, pid: process.pid }),
      error => report('started', { error: error.message }),
    )
  },

  stopping() {
    report('stopping', {})
  },
})
