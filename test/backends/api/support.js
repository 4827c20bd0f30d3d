// What the tests of the server API share: a gateway with channels of every kind, calls on fresh connections, users.

import http from 'node:http'
import { SECRET, token } from '../../clients/session/support.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'

export const KEY = 'the key of the tests'

const history = { history_size: 5, history_ttl: '60s' }
const readers = { allow_subscribe_for_client: true }

/** Names without namespace, and one namespace for each thing that a channel can be. */
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

/**
 * One request on a connection of its own, so that any worker may get it.
 * @param {number} port
 * @param {string} method
 * @param {string} path
 * @param {string | undefined} body
 * @param {Record<string, string>} headers
 * @returns {Promise<{status: number | undefined, headers: http.IncomingHttpHeaders, text: string}>}
 */
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

/**
 * A gateway of two workers, and its callers.
 * @param {any} t
 * @param {object} [config] blocks over those of the tests
 */
export async function startApi(t, config = {}) {
  const gateway = await startGateway(t, {
    client: { token: { hmac_secret_key: SECRET } },
    http_api: { key: KEY },
    channel: CHANNEL,
    ...config,
  })
  const { port, ws } = gateway

  const api = {
    /** What the gateway logged as an error of its own. */
    failures: () => gateway.lines.filter(({ level }) => level >= 50),

    /**
     * @param {string} method
     * @param {string} path
     * @param {string} [body]
     * @param {Record<string, string>} [headers] with a right key, unless given
     */
    request: (method, path, body, headers = { 'x-api-key': KEY }) =>
      request(port, method, path, body, headers),

    /**
     * @param {string} name of the method
     * @param {string | object} body
     * @returns {Promise<string>} the answer as it came
     */
    async text(name, body) {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      return (await api.request('POST', `/api/${name}`, text)).text
    },

    /**
     * @param {string} name of the method
     * @param {object} params
     * @returns {Promise<any>} the parsed answer
     */
    call: async (name, params) => JSON.parse(await api.text(name, params)),

    /**
     * A connected client of the user, which leaves with the test.
     * @param {string} user
     * @param {object} [claims]
     */
    async client(user, claims = {}) {
      const client = await RawClient.connected(ws, { token: token({ sub: user, ...claims }) })
      t.teardown(() => client.socket.terminate())
      return client
    },

    /**
     * A connected client that has subscribed to the channel.
     * @param {string} channel
     * @param {string} [user]
     */
    async subscriber(channel, user = 'anna') {
      const client = await api.client(user)
      const reply = await client.subscribe(channel)
      if (reply.error) throw new Error(`${channel}: ${reply.error.message}`)
      return client
    },
  }
  return api
}

/**
 * Takes the next publications of a channel.
 * @param {RawClient} client
 * @param {string} channel
 * @param {number} count
 */
export async function publications(client, channel, count) {
  const taken = []
  while (taken.length < count) {
    const { push } = await client.next(message => message.push?.channel === channel && message.push.pub)
    taken.push(push.pub)
  }
  return taken
}
