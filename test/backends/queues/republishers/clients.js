// Clients of gateways that republish, and figures of those.

import { readFileSync } from 'node:fs'
import WebSocket from 'ws'
import { fetch } from '../../../kit/fetch.js'

/** For gateways whose clients publish and subscribe as they like. */
export const openConfig = Object.freeze({
  client: { insecure: true },
  prometheus: { enabled: true },
  log: { level: 'info' },
})

/** @typedef {{channel: string, data: any}} Received */

/**
 * A client whose calls resolve with the reply.
 * @param {any} t ends with this test @param {import('../../../kit/gateway.js').TestGateway} gateway
 */
export async function join(t, gateway) {
  const socket = new WebSocket(gateway.ws)
  t.teardown(() => socket.terminate())
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  /** @type {Map<number, (reply: any) => void>} */
  const waiting = new Map()
  /** @type {Received[]} */
  const received = []
  socket.on('error', () => {})
  socket.on('message', data => {
    for (const line of data.toString().split('\n')) {
      const reply = JSON.parse(line)
      const { pub, channel } = reply.push ?? {}
      if (pub) received.push({ channel, data: pub.data })
      waiting.get(reply.id)?.(reply)
      waiting.delete(reply.id)
    }
  })
  let closed = false
  socket.on('close', () => {
    closed = true
    for (const resolve of waiting.values()) resolve({ lost: true })
  })
  let id = 0
  /** @param {object} command @returns {Promise<any>} `{lost: true}` without a reply */
  const call = command =>
    new Promise(resolve => {
      if (closed) return resolve({ lost: true })
      waiting.set(++id, resolve)
      socket.send(JSON.stringify({ id, ...command }))
    })
  await call({ connect: {} })
  return {
    received,
    /** @param {string} channel */
    subscribe: channel => call({ subscribe: { channel } }),
    /** @param {string} channel @param {unknown} data */
    publish: (channel, data) => call({ publish: { channel, data } }),
    close: () => socket.terminate(),
  }
}

/**
 * @param {import('../../../kit/gateway.js').TestGateway} gateway with `prometheus`
 * @returns {Promise<Map<string, number>>} family and labels -> value
 */
export async function metricsOf(gateway) {
  const answer = await fetch(`${gateway.url}/metrics`)
  const lines = (await answer.text()).split('\n').filter((/** @type {string} */ line) => /^[a-z]/.test(line))
  return new Map(
    lines.map((/** @type {string} */ line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))]
    }),
  )
}

/**
 * @param {import('../../../kit/gateway.js').TestGateway} gateway @param {string} program
 * @returns {number} pid of its first child that runs it
 */
export function childOf({ process: { pid } }, program) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
  const found = children.find(child => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes(program))
  if (found === undefined) throw new Error(`no child runs ${program}`)
  return found
}
