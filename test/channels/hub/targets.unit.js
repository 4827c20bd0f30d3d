import t from 'tap'
import { answer, PLAIN, POSITIONED, startHub } from './rig.js'

/** @param {object} target */
const targetOf = target => ({ excludeClient: '', excludeUser: '', users: null, ...target })

/** A hub with subscribers of channel `x`. */
function start() {
  const rig = startHub()
  return {
    hub: rig.hub,
    session: rig.session,
    get published() {
      return rig.published
    },
    /** @param {string} user @param {object} [options] of the join, and `binary` @returns {any} */
    subscriber(user, options = {}, wants = PLAIN) {
      const session = Object.assign(rig.session(options), { user, id: `client of ${user}` })
      rig.subscribe(session, 'x', wants, options)
      for (const { done } of rig.calls.splice(0)) done?.(null, answer(0, wants.position ? 'epoch' : ''))
      session.got = []
      return session
    },
    /** @param {any} data @param {object} [target] @param {object} [rest] */
    publish(data, target, rest) {
      rig.publish('x', JSON.stringify(data), { target: target ? targetOf(target) : null, ...rest })
    },
  }
}

/** @param {any} session @returns {any[]} data since the last call */
const read = session =>
  session.got
    .splice(0)
    .map((/** @type {any} */ got) => (typeof got === 'string' ? JSON.parse(got.slice(7)).push : got).pub.data)

t.test('each codec is encoded once, and the deliveries are counted', t => {
  const channel = start()
  const sessions = Array.from({ length: 20 }, (_, n) =>
    channel.subscriber(`u${n >> 1}`, { binary: n % 2 === 0 }),
  )
  channel.publish(1, { excludeUser: 'u3' })
  t.equal(channel.published, 2)
  t.equal(channel.hub.delivered, 18)
  channel.publish(2, { users: ['u3', 'u4', 'nobody'] })
  t.equal(channel.published, 4)
  t.equal(channel.hub.delivered, 22)
  channel.publish(3)
  for (const session of sessions) {
    const expected = { u3: [2, 3], u4: [1, 2, 3] }[/** @type {'u3'} */ (session.user)] ?? [1, 3]
    t.strictSame(read(session), expected, session.user)
    t.equal(session.topics.size, 1)
  }
  t.end()
})

t.test('nothing is sent if nobody remains', t => {
  const channel = start()
  const session = channel.subscriber('u1')
  channel.publish(1, { excludeUser: 'u1', excludeClient: session.id })
  channel.publish(2, { users: ['u2'] })
  t.equal(channel.published, 0)
  t.equal(channel.hub.delivered, 0)
  channel.publish(3)
  t.strictSame(read(session), [3])
  t.end()
})

t.test('a payload that is not JSON disconnects only JSON clients that would receive it', t => {
  const channel = start()
  const [excluded, other] = ['u1', 'u2'].map(user => channel.subscriber(user))
  const binary = channel.subscriber('u2', { binary: true })
  channel.publish(1, { excludeUser: 'u1' }, { json: false })
  t.strictSame(
    [excluded, other].map(({ refused }) => refused),
    [false, true],
  )
  t.strictSame(read(binary), [1])
  t.end()
})

t.test('a subscriber that waits for its reply is checked too', t => {
  const channel = start()
  channel.subscriber('u2', {}, POSITIONED)
  const joining = ['u1', 'u2', ''].map(user => {
    const session = channel.session()
    const buffer = channel.hub.buffer(
      /** @type {any} */ (channel.hub.channels.get('x')),
      session.codec,
      null,
      false,
      false,
      10_000,
    )
    buffer.session = { user, id: `client of ${user}` }
    return buffer
  })
  channel.publish(1, { excludeUser: 'u1' })
  channel.publish(2, { users: ['u1'] })
  channel.publish(3, { excludeClient: 'client of ' })
  t.strictSame(
    joining.map(({ messages }) => messages.map(message => JSON.parse(String(message)).push.pub.data)),
    [[2, 3], [1, 3], [1]],
  )
  t.end()
})

t.test('positions advance over it', t => {
  const channel = start()
  const session = channel.subscriber('u1', {}, POSITIONED)
  const rest = (/** @type {number} */ offset) => ({ offset, epoch: 'epoch' })
  channel.publish(1, { excludeUser: 'u1' }, rest(1))
  channel.publish(2, { users: ['u1'] })
  channel.publish(3, undefined, rest(2))
  t.strictSame(read(session), [2, 3])
  t.strictSame(session.lost, [])
  t.end()
})
