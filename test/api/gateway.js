// A whole gateway for the tests of the server API: `halley serve` with a file, two workers, a free port.

import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'

const BIN = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))
const KEY = 'the key of the tests'
const SECRET = 'the secret of the tests'

/** Channels of the tests: `plain`, and one namespace for each thing that a channel can be. */
const CHANNEL = {
  without_namespace: { presence: true, allow_subscribe_for_client: true },
  namespaces: [
    { name: 'off', allow_subscribe_for_client: true },
    {
      name: 'his',
      history_size: 5,
      history_ttl: '60s',
      force_recovery: true,
      allow_subscribe_for_client: true,
    },
    {
      name: 'chat',
      history_size: 5,
      history_ttl: '60s',
      allow_subscribe_for_client: true,
      allow_publish_for_client: true,
    },
    { name: 'json', publication_data_format: 'json', history_size: 5, history_ttl: '60s' },
    { name: 'object', publication_data_format: 'json_object' },
    { name: 'binary', publication_data_format: 'binary', history_size: 5, history_ttl: '60s' },
  ],
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

/** @param {object} claims */
export function token(claims) {
  const part = value => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`
}

/**
 * One request on a connection of its own, so that any worker may get it.
 * @returns {Promise<{status: number, headers: object, text: string}>}
 */
function request(port, method, path, body, headers) {
  return new Promise((resolve, reject) => {
    const req = http.request({ host: '127.0.0.1', port, method, path, headers, agent: false }, async res => {
      res.setEncoding('utf8')
      let text = ''
      for await (const chunk of res) text += chunk
      resolve({ status: res.statusCode, headers: res.headers, text })
    })
    req.on('error', reject)
    req.end(body)
  })
}

async function healthy(port, child, output) {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`halley ended with ${child.exitCode}: ${output()}`)
    const answer = await request(port, 'GET', '/health').catch(() => null)
    if (answer?.status === 200) return
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/** A client that keeps every reply and push it gets, as parsed JSON and as text. */
export class Subscriber {
  frames = []
  texts = []
  closed = null
  #socket
  #waiting = []
  #id = 0
  #closing

  constructor(url) {
    this.#socket = new WebSocket(url)
    this.#closing = new Promise(resolve => {
      this.#socket.on('close', (code, reason) => {
        this.closed = { code, reason: reason.toString() }
        resolve(this.closed)
      })
    })
    // A failed connect is told by `send`, a later failure by `close`.
    this.#socket.on('error', () => {})
    this.#socket.on('message', data => {
      for (const line of data.toString().split('\n')) this.#take(line)
    })
  }

  #take(line) {
    if (line === '{}') return this.#socket.send('{}')
    this.texts.push(line)
    this.frames.push(JSON.parse(line))
    this.#waiting = this.#waiting.filter(wait => !wait())
  }

  /** The first frame, past or future, that `test` accepts. */
  find(test) {
    return new Promise(resolve => {
      const look = () => {
        const found = this.frames.find(test)
        if (found !== undefined) resolve(found)
        return found !== undefined
      }
      if (!look()) this.#waiting.push(look)
    })
  }

  /** @returns {Promise<any>} the reply */
  async send(command) {
    const id = ++this.#id
    if (this.#socket.readyState === WebSocket.CONNECTING) await once(this.#socket, 'open')
    this.#socket.send(JSON.stringify({ id, ...command }))
    return this.find(frame => frame.id === id)
  }

  /** Payloads of the channel so far, waiting until there are `count`. */
  async publications(channel, count) {
    const own = () => this.frames.filter(({ push }) => push?.channel === channel && push.pub)
    await this.find(() => own().length >= count)
    return own().map(({ push }) => push.pub)
  }

  get closing() {
    return this.#closing
  }

  async close() {
    this.#socket.close()
    await this.#closing
  }
}

/**
 * @param {object} [extra] top-level blocks of the configuration
 */
export async function startGateway(extra = {}) {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'halley-api-'))
  const file = join(folder, 'config.json')
  const config = {
    workers: 2,
    http_server: { address: '127.0.0.1', port },
    client: { token: { hmac_secret_key: SECRET }, allowed_origins: ['*'] },
    http_api: { key: KEY },
    channel: CHANNEL,
    health: { enabled: true },
    log: { level: 'error' },
    ...extra,
  }
  await writeFile(file, JSON.stringify(config))
  const child = spawn(process.execPath, [BIN, 'serve', '-c', file, '--no-dashboard'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', data => (output += data))
  child.stderr.on('data', data => (output += data))
  const exited = once(child, 'exit')
  await healthy(port, child, () => output)
  const subscribers = []

  return {
    key: KEY,
    /** What the gateway logged: with level `error` nothing should. */
    output: () => output,

    request: (method, path, body, headers = { 'x-api-key': KEY }) =>
      request(port, method, path, body, headers),

    /** The text of the answer to a call with a right key. */
    async text(name, body, headers = {}) {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const answer = await request(port, 'POST', `/api/${name}`, text, { 'x-api-key': KEY, ...headers })
      return answer.text
    },

    async call(name, params) {
      return JSON.parse(await this.text(name, params))
    },

    /** A connected client of the user. */
    async client(user, claims = {}) {
      const subscriber = new Subscriber(`ws://127.0.0.1:${port}/connection/websocket`)
      subscribers.push(subscriber)
      const { connect } = await subscriber.send({ connect: { token: token({ sub: user, ...claims }) } })
      subscriber.id = connect.client
      return subscriber
    },

    /** A connected client that has subscribed to the channel. */
    async subscriber(channel, user = 'anna') {
      const subscriber = await this.client(user)
      const reply = await subscriber.send({ subscribe: { channel } })
      if (reply.error) throw new Error(`${channel}: ${reply.error.message}`)
      return subscriber
    },

    async stop() {
      await Promise.all(subscribers.map(subscriber => subscriber.close()))
      child.kill('SIGTERM')
      await exited
      await rm(folder, { recursive: true })
    },
  }
}
