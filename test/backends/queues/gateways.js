// Gateways with queues in tests: their clients, figures and processes.

import { readFileSync } from 'node:fs'
import { fetch } from '../../kit/fetch.js'
import { RawClient } from '../../kit/raw-client.js'

/** For gateways whose clients may publish and subscribe everywhere. */
export const openConfig = Object.freeze({
  client: { insecure: true },
  prometheus: { enabled: true },
  log: { level: 'info' },
})

/**
 * A client whose calls resolve with the reply, `{lost: true}` without one.
 * @param {any} t ends with this test @param {import('../../kit/gateway.js').TestGateway} gateway
 */
export async function join(t, gateway) {
  const client = await RawClient.connected(gateway.ws)
  t.teardown(() => client.socket.terminate())
  const call = (method, request) => client.call(method, request).catch(() => ({ lost: true }))
  return {
    /** Received publications. @returns {any[]} */
    get received() {
      return client.messages.flatMap(({ push }) => push?.pub ?? [])
    },
    subscribe: channel => call('subscribe', { channel }),
    publish: (channel, data) => call('publish', { channel, data }),
  }
}

/**
 * @param {import('../../kit/gateway.js').TestGateway} gateway with `prometheus`
 * @returns {Promise<Map<string, number>>} family and labels -> value
 */
export async function metricsOf(gateway) {
  const answer = await fetch(`${gateway.url}/metrics`)
  const lines = (await answer.text()).split('\n').filter(line => /^[a-z]/.test(line))
  return new Map(
    lines.map(line => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))]
    }),
  )
}

/** @param {import('../../kit/gateway.js').TestGateway} gateway @returns {number[]} pids of its workers and queue process */
export const childrenOf = ({ process: { pid } }) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)

/**
 * @param {import('../../kit/gateway.js').TestGateway} gateway
 * @param {string} program
 * @returns {number} pid of its first child that runs it; 0: none
 */
export const childOf = (gateway, program) =>
  childrenOf(gateway).find(child => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes(program)) ?? 0
