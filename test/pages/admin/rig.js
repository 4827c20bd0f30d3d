// The admin endpoints of several workers in one process: real socket servers, a fake view and broker.

import { NodeInfo } from '../../../src/backends/api/info.js'
import { createServer } from '../../../src/clients/server/index.js'
import { Calls } from '../../../src/clients/transport/calls.js'
import { mountAdmin } from '../../../src/pages/admin/index.js'
import { defaultDriver } from '../../kit/drivers.js'
import { fetch } from '../../kit/fetch.js'
import { freePort } from '../../kit/ports.js'
import { mockSnapshots } from '../../metrics/mock.js'

const NODE = { uid: 'node-1', name: 'node 1', version: '0.0.0', startedAt: 0 }
export const PASSWORD = 'the admin key of the tests'

export class FakeView {
  history = mockSnapshots({ seconds: 5 })
  events = this.history.flatMap(({ events }) => events)
  /** @type {any[]} */
  commands = []
  /** @type {string | null} what a command fails with */
  fault = null
  #listeners = new Set()

  watch(listener) {
    this.#listeners.add(listener)
    const [{ node }] = this.history
    listener({ type: 'hello', schema: 1, node, history: this.history, events: this.events })
    return () => this.#listeners.delete(listener)
  }

  async command(command) {
    this.commands.push(command)
    if (this.fault !== null) throw new Error(this.fault)
  }

  send(message) {
    for (const listener of this.#listeners) listener(message)
  }

  get listeners() {
    return this.#listeners.size
  }
}

/**
 * @param {any} t
 * @param {{driver?: 'uws' | 'node', workers?: number, admin?: object, clock?: () => number,
 *   sleep?: (ms: number) => Promise<unknown>}} [options]
 */
export async function startAdmin(
  t,
  { driver = defaultDriver, workers = 1, admin = {}, clock = Date.now, sleep } = {},
) {
  const view = new FakeView()
  const calls = []
  /** Workers that do not answer calls. */
  const silent = new Set()
  const urls = []
  let survey = async (_op, _params) => []
  const control = {
    survey: (op, params) => survey(op, params),
    call(_node, worker, request, done) {
      if (silent.has(worker)) return
      setImmediate(() => calls[worker].called(Buffer.from(request), bytes => done(null, Buffer.from(bytes))))
    },
  }
  const broker = { control }
  const log = { error() {} }
  const rules = { resolve: () => undefined }
  for (let index = 0; index < workers; index++) {
    const server = await createServer({ driver })
    calls.push(new Calls(/** @type {any} */ (log)))
    mountAdmin(
      /** @type {any} */ ({
        config: { admin: { password: PASSWORD, secret: '', handler_prefix: '/admin', ...admin } },
        server,
        view,
        context: {
          rules,
          broker,
          logger: log,
          nodeInfo: new NodeInfo(NODE, /** @type {any} */ (control), 60_000, clock),
        },
        broker,
        calls: calls[index],
        version: '0.0.0',
        worker: index,
        counting: () => 0,
        clock,
        sleep,
      }),
    )
    const port = await freePort()
    await server.listen('127.0.0.1', port)
    t.teardown(() => server.shutdown())
    urls.push(`http://127.0.0.1:${port}/admin`)
  }

  const rig = {
    setSurvey: answer => {
      survey = answer
    },
    view,
    silent,
    urls,
    url: urls[0],

    /**
     * @param {string} name of the endpoint @param {string | Buffer | object} body
     * @param {{token?: string, worker?: number, headers?: Record<string, string>}} [options]
     */
    async post(name, body, { token, worker = 0, headers = {} } = {}) {
      const answer = await fetch(`${urls[worker]}/api/${name}`, {
        method: 'POST',
        headers: token === undefined ? headers : { ...headers, Authorization: `Bearer ${token}` },
        body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      })
      return { status: answer.status, headers: answer.headers, body: await answer.json() }
    },

    /** @param {string} token @param {RequestInit} [init] */
    stream: (token, init) =>
      globalThis.fetch(`${urls[0]}/api/stream`, { ...init, headers: { Authorization: `Bearer ${token}` } }),

    login: (password = PASSWORD, worker = 0) => rig.post('login', { password }, { worker }),

    async token() {
      return (await rig.login()).body.token
    },
  }
  return rig
}

/** The lines of a stats stream. @param {Response} answer */
export async function* lines(answer) {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of /** @type {any} */ (answer.body)) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = /** @type {string} */ (parts.pop())
    for (const part of parts) yield JSON.parse(part)
  }
}
