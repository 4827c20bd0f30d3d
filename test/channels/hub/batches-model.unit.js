// Random publications, subscriptions and flushes against a model, with and without batches: order, positions, deltas,
// targets.

import t from 'tap'
import { reaches } from '../../../src/channels/broker/target.js'
import { chance } from '../../clients/delta/chance.js'
import { DeltaReader } from '../../clients/delta/reader.js'
import { answer, PLAIN, POSITIONED, startHub } from './rig.js'

const FILL = 'what stays the same from one publication to the next, '.repeat(4)
const text = n => JSON.stringify(`${FILL}${n}`)
const info = n => `{"user":"u${n}","client":"c"}`

/** @returns {string} anonymous: '' */
const user = random => random.pick(['u1', 'u2', 'u3', ''])

/** @returns {import('../../../src/channels/broker/target.js').Target} */
const targetOf = random =>
  random.hit(0.4)
    ? { excludeClient: '', excludeUser: '', users: [random.pick(['u1', 'u2']), 'u3'] }
    : { excludeClient: `client ${random.below(250)}`, excludeUser: user(random), users: null }

/** @returns {string[]} messages since the last call */
const read = session =>
  session.got.splice(0).map(message => {
    const { pub, join, id } =
      typeof message === 'string' ? JSON.parse(message.slice('binary '.length)).push : message
    if (id !== (session.compact ? session.id : undefined)) return `id ${id}`
    if (join) return join.info.user
    return session.reader === null ? JSON.stringify(pub.data) : session.reader.read(pub)
  })

/** Model of a window: its items and their recipients. */
class Model {
  /** @type {{text: string, key: string | null, offset: number, json?: boolean, event?: boolean, target?: any}[]} null: never conflated */
  window = []
  /** Session -> expected unread messages. */
  sessions = new Map()

  flush() {
    const { window } = this
    this.window = []
    for (const [session, state] of this.sessions) {
      window.forEach(({ text, key, event, json, target }, index) => {
        const replaced = key !== null && window.some((other, later) => later > index && other.key === key)
        if (state.gone || index < state.from || replaced || (event && !session.events)) return
        if (target && !reaches(target, session.user, session.id)) return
        // JSON clients are disconnected.
        if (json === false && !session.codec.binary) state.gone = true
        else state.expected.push(text)
      })
      state.from = 0
      state.position = Math.max(state.position, ...window.map(({ offset }) => offset))
    }
  }
}

t.test('delivers random publications once and in order to random subscribers', async t => {
  const random = chance(17)
  for (let round = 0; round < 90; round++) {
    // Without batches, windows are flushed immediately.
    const batched = round % 3 > 0
    const latest = batched && random.hit(0.5)
    const tag = latest && random.hit(0.6) ? 'key' : ''
    const maxSize = random.hit(0.3) ? 1 + random.below(6) : 0
    const batch = {
      namespace: '',
      maxSize,
      maxDelay: 50,
      maxBytes: random.hit(0.2) ? 1500 : 1e6,
      latest,
      tag,
    }
    const keepsLatest = random.hit(0.5)
    const rig = startHub({ batch: batched ? Object.freeze(batch) : null })
    const model = new Model()
    const { sessions } = model
    let epoch = 'first'
    let stream = []
    let serial = 0
    let faults = 0

    const check = (session, state) => {
      const got = read(session)
      if (JSON.stringify(got) !== JSON.stringify(state.expected)) faults++
      state.expected = []
      const { channel, cohort } = session.joined.get('x') ?? {}
      if (session.positioned && channel && channel.sentTo(cohort) !== state.position) faults++
    }

    for (let step = 0; step < 250; step++) {
      const action = random.below(10)
      if (action < 5) {
        serial++
        const target = random.hit(0.15) ? targetOf(random) : null
        const kept = random.hit(0.9) && !target?.users
        const renewed = kept && random.hit(0.02) && [...sessions.keys()].some(session => session.positioned)
        if (renewed) {
          epoch = `epoch ${serial}`
          stream = []
          model.flush()
        }
        const offset = kept ? stream.length + 1 : 0
        const key = tag === '' || random.hit(0.8) ? `k${random.below(3)}` : null
        const next = {
          ...{ data: Buffer.from(text(serial)), offset, epoch: offset > 0 ? epoch : '', info: '' },
          ...{ tags: key === null ? null : { key }, version: 0n, json: !random.hit(0.05) },
          ...{ delta: random.hit(0.9), keyed: null, target },
        }
        if (offset > 0) stream.push(next)
        // Sent alone.
        if (target !== null) model.flush()
        model.window.push({
          ...{ text: text(serial), key: latest ? (tag === '' ? '' : key) : null, offset, json: next.json },
          target,
        })
        if (sessions.size === 0) model.window = []
        const before = new Set(sessions.keys())
        rig.hub.publication('x', next)
        for (const session of before) {
          if (session.lost.length === 0) continue
          check(session, sessions.get(session))
          sessions.delete(session)
        }
        if (sessions.size === 0) model.window = []
        if (rig.hub.batches.held === 0) model.flush()
      } else if (action === 5) {
        serial++
        const watched = [...sessions.keys()].some(({ events }) => events)
        if (watched) model.window.push({ text: `u${serial}`, key: null, offset: 0, event: true })
        rig.hub.presence('x', info(serial), true)
        if (rig.hub.batches.held === 0) model.flush()
      } else if (action === 6) {
        rig.pass(random.below(60))
        if (rig.hub.batches.held === 0) model.flush()
      } else if (action < 9 && sessions.size < 12) {
        const delta = random.hit(0.5)
        const reader = delta ? new DeltaReader() : null
        const session = Object.assign(rig.session({ binary: random.hit(0.3) }), {
          ...{ reader, user: user(random), id: `client ${step}` },
        })
        const wants = random.hit(0.8) ? POSITIONED : PLAIN
        session.positioned = wants === POSITIONED
        session.inappropriateProtocol = () => {
          session.refused = true
          rig.unsubscribe(session, 'x')
        }
        session.events = random.hit(0.3)
        session.compact = random.hit(0.3)
        const recovers = session.positioned && random.hit(0.5)
        const missed = recovers ? stream.slice(-random.below(4) || stream.length) : []
        const recovered = missed.filter(
          ({ target }) => target === null || reaches(target, session.user, session.id),
        )
        if (reader) for (const { data } of recovered) reader.read({ data: String(data) })
        rig.subscribe(session, 'x', wants, {
          ...{ delta, events: session.events, received: recovered.at(-1) ?? null },
          ...{ keepsLatest, compact: session.compact },
        })
        for (const { done } of rig.calls.splice(0)) done?.(null, answer(stream.length, epoch))
        session.got = []
        session.id = session.joined.get('x')?.channel.id
        // Too many newcomers flush the window first.
        if (rig.hub.batches.held === 0) model.flush()
        sessions.set(session, { from: model.window.length, expected: [], position: stream.length })
      } else if (sessions.size > 0) {
        const session = random.pick([...sessions.keys()])
        check(session, sessions.get(session))
        sessions.delete(session)
        rig.unsubscribe(session, 'x')
        rig.calls.splice(0)
        if (sessions.size === 0) model.window = []
      }
      for (const [session, state] of sessions) {
        check(session, state)
        if (session.refused !== Boolean(state.gone)) faults++
        if (session.refused) sessions.delete(session)
      }
      if (sessions.size === 0) model.window = []
    }
    rig.pass(50)
    model.flush()
    for (const [session, state] of sessions) check(session, state)
    t.equal(rig.hub.batches.held, 0)
    t.equal(faults, 0, `round ${round}: ${JSON.stringify(batch)}`)
  }
})
