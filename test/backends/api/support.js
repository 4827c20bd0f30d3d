// Shared by tests of the server API: a gateway with channels of every kind, calls on fresh connections, users.

import http from 'node:http'
import { SECRET, token } from '../../clients/session/support.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'

export const KEY = 'the key of the tests'

const history = { history_size: 5, history_ttl: '60s' }
const readers = { allow_subscribe_for_client: true }

/** Channels without namespace, and one namespace per kind of channel. */
const CHANNEL = {
  without_namespace: { presence: true, ...readers },
  namespaces: [
    { name: 'off', ...readers },
    { name: 'his', ...history, ...readers, force_recovery: true },
    { name: 'chat', ...history, ...readers, allow_publish_for_client: true },
    { name: 'json', ...history, publication_data_format: 'json' },
    { name: 'object', publication_data_format: 'json_object' },
    { name: 'binary', ...history, publication_data_format: 'binary' },
  ],
}

/** One request on a new connection, so that any worker may get it. @returns {Promise<any>} */
function request(port, method, path, body, headers) {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method, path, headers, agent: false }
    const sent = http.request(options, async answer => {
      answer.setEncoding('utf8')
      let text = ''
      for await (const chunk of answer) text += chunk
      resolve({ status: answer.statusCode, headers: answer.headers, text })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** A gateway of two workers, and its callers. @param {any} t @param {object} [config] blocks over those of the tests */
export async function startApi(t, config = {}) {
  const gateway = await startGateway(t, {
    client: { token: { hmac_secret_key: SECRET } },
    http_api: { key: KEY },
    channel: CHANNEL,
    ...config,
  })
  const { port, ws } = gateway

  const api = {
    /** Errors logged by the gateway. */
    failures: () => gateway.lines.filter(({ level }) => level >= 50),

    /** With a right key, unless `headers` are given. @type {(...request: any[]) => Promise<any>} */
    request: (method, path, body, headers = { 'x-api-key': KEY }) =>
      request(port, method, path, body, headers),

    /** @param {string} name of the method @param {string | object} body @returns {Promise<string>} the answer */
    async text(name, body) {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      return (await api.request('POST', `/api/${name}`, text)).text
    },

    /** As `text`, parsed. @returns {Promise<any>} */
    call: async (name, params) => JSON.parse(await api.text(name, params)),

    /** A connected client of the user, disconnected at the end of the test. */
    async client(user, claims = {}) {
      const client = await RawClient.connected(ws, { token: token({ sub: user, ...claims }) })
      t.teardown(() => client.socket.terminate())
      return client
    },

    /** A connected client that has subscribed to the channel. */
    async subscriber(channel, user = 'anna') {
      const client = await api.client(user)
      const reply = await client.subscribe(channel)
      if (reply.error) throw new Error(`${channel}: ${reply.error.message}`)
      return client
    },
  }
  return api
}

/** Takes the next publications of a channel. */
export async function publications(client, channel, count) {
  const taken = []
  while (taken.length < count) {
    const { push } = await client.next(message => message.push?.channel === channel && message.push.pub)
    taken.push(push.pub)
  }
  return taken
}
