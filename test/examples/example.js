// Programs of examples/, started as their readers do.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Centrifuge } from 'centrifuge'
import WebSocket from 'ws'

/**
 * @param {any} t @param {string} name of the example @param {Record<string, string>} env
 * @returns {Promise<{app: string, gateway: string, stop: () => Promise<any>}>} addresses that it has printed
 */
export async function startExample(t, name, env) {
  const program = fileURLToPath(new URL(`../../examples/${name}/server.js`, import.meta.url))
  const child = spawn(process.execPath, [program], {
    env: {
      ...process.env,
      PORT: '0',
      GATEWAY_PORT: '0',
      WORKERS: '1',
      HALLEY_OVERLOAD_MAX_TICK: '0s',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const addresses = new Map()
  for await (const line of createInterface({ input: child.stdout })) {
    const [, what, url] = /^(app|gateway) (http\S+)$/.exec(line) ?? []
    if (what) addresses.set(what, url)
    if (addresses.size === 2) break
  }
  return {
    app: addresses.get('app'),
    gateway: addresses.get('gateway'),
    stop() {
      child.kill('SIGTERM')
      return exited
    },
  }
}

export const next = (emitter, name) => new Promise(resolve => emitter.once(name, resolve))

/**
 * A client of the SDK on a page of that origin.
 * @param {any} t
 * @param {string} gateway
 * @param {string} origin
 * @param {object} options
 */
export function sdk(t, gateway, origin, options) {
  class BrowserSocket extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols, { origin })
    }
  }
  const url = `${gateway.replace('http', 'ws')}/connection/websocket`
  const client = new Centrifuge(url, { websocket: BrowserSocket, ...options })
  t.teardown(() => client.disconnect())
  return client
}
