// The limit of pending publishes.

import t from 'tap'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { ReplyBatch } from '../../../src/clients/session/replies.js'
import { Session } from '../../../src/clients/session/session.js'
import { State } from '../../../src/clients/session/state.js'

/** As in session.js. */
const MAX_UNANSWERED = 1024

t.test('a reply to another command does not raise the limit of pending publishes', async t => {
  /** @type {((error: null) => void)[]} */
  const published = []
  /** @type {(() => void)[]} */
  const calls = []
  const namespace = {
    kind: 'stream',
    options: {},
    handlers: { publish: null },
    dataFormat: '',
    republish: null,
  }
  /** @type {any} */
  const context = {
    rateLimits: null,
    userStatus: null,
    acks: null,
    config: { client: { concurrency: 2 }, rpc: { ping: {} }, websocket: { message_size_limit: 65536 } },
    replies: new ReplyBatch(),
    rules: { resolve: () => namespace, checkName: () => true, mayPublish: () => true },
    traffic: { commands: [], counts: { publishes: 0 } },
    handlers: { rpc: () => ({}) },
    hookCalls: {
      ask: (/** @type {any[]} */ ...args) => calls.push(() => args[3](null, null)) > 0,
    },
    broker: { pubsub: { publish: (/** @type {any[]} */ ...args) => published.push(args.at(-1)) } },
  }
  const transport = /** @type {any} */ ({ context, traffic: { received() {}, sent() {} }, send() {} })
  const session = new Session(transport, {}, new JsonCodec(), 0)
  session.state = State.CONNECTED
  let id = 0
  const receive = (/** @type {string} */ request, count = 1) =>
    session.receive(Buffer.from(Array.from({ length: count }, () => `{"id":${++id},${request}}`).join('\n')))
  const publish = '"publish":{"channel":"c","data":1}'

  receive('"rpc":{"method":"slow"}')
  receive(publish, MAX_UNANSWERED + 10)
  t.equal(session.unanswered, MAX_UNANSWERED)
  calls[0]()
  receive(publish, 500)
  t.ok(session.unanswered <= MAX_UNANSWERED + 1, `${session.unanswered} unanswered`)
  for (let answer = published.shift(); answer; answer = published.shift()) answer(null)
  t.equal(session.unanswered, 0)
  t.equal(session.queue, null, 'all publishes were sent')
})
