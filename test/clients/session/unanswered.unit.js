// The bound of publications that the broker has not answered.

import t from 'tap'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { ReplyBatch } from '../../../src/clients/session/replies.js'
import { Session } from '../../../src/clients/session/session.js'
import { State } from '../../../src/clients/session/state.js'

/** As of session.js. */
const MAX_UNANSWERED = 1024

t.test('the end of another command lets no more publications pass', async t => {
  /** @type {((error: null) => void)[]} */
  const published = []
  /** @type {(() => void)[]} */
  const asked = []
  const namespace = { options: {}, handlers: { publish: null }, dataFormat: '', republish: null }
  /** @type {any} */
  const context = {
    config: { client: { concurrency: 2 }, rpc: { ping: {} }, websocket: { message_size_limit: 65536 } },
    replies: new ReplyBatch(),
    rules: { resolve: () => namespace, checkName: () => true, mayPublish: () => true },
    traffic: { commands: [], counts: { publishes: 0 } },
    handlers: { rpc: () => ({}) },
    hookCalls: {
      ask(
        /** @type {any} */ _session,
        /** @type {any} */ _handler,
        /** @type {any} */ _event,
        /** @type {any} */ done,
      ) {
        asked.push(() => done(null, null))
        return true
      },
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
  asked[0]()
  receive(publish, 500)
  t.ok(session.unanswered <= MAX_UNANSWERED + 1, `${session.unanswered} unanswered`)
  for (let answer = published.shift(); answer; answer = published.shift()) answer(null)
  t.equal(session.unanswered, 0)
  t.equal(session.queue, null, 'all have passed')
})
