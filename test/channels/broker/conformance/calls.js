// Calls from worker to worker.

import { errors } from '../../../../src/base/errors.js'
import { until } from '../../../kit/wait.js'
import { failure, Peer, upTo } from './peer.js'

/** All byte values, which are not valid UTF-8. */
const BYTES = Buffer.from(upTo(256, 0))

export function calls(test) {
  test('a call reaches its worker, and the result its caller', 3, async (t, _rig, a, b, c) => {
    for (const [i, peer] of [a, b, c].entries())
      peer.called = (request, answer) => answer(Buffer.concat([Buffer.from([i]), request]))
    for (const caller of [a, b, c]) {
      for (const [i, peer] of [a, b, c].entries()) {
        t.same(await caller.call(peer, BYTES), Buffer.concat([Buffer.from([i]), BYTES]))
      }
    }
    const large = Buffer.alloc(3_000_000, 'é')
    t.ok((await a.call(b, large)).equals(Buffer.concat([Buffer.from([1]), large])))
    c.called = (request, answer) => answer(`${request} да`)
    t.equal(String(await a.call(c, 'ü')), 'ü да', 'texts are UTF-8')
    c.called = (_request, answer) => answer('')
    t.equal(String(await a.call(c, '')), '', 'a result may be empty')
  })

  test('an empty node id means this node', 2, async (t, _rig, a, b) => {
    b.called = (request, answer) => answer(request)
    t.equal(String(await a.call({ place: { node: '', worker: b.place.worker } }, 'x')), 'x')
  })

  test('results may arrive in any order', 2, async (t, _rig, a, b) => {
    const open = []
    b.called = (request, answer) => open.push({ text: String(request), answer })
    const answers = upTo(100).map(n => a.call(b, `${n}`))
    const { node, worker } = b.place
    b.broker.control.call(node, worker, 'never answered', () => {})
    await until(() => open.length >= 101)
    for (const { text, answer } of open.slice(0, 100).reverse()) {
      answer(`answer ${text}`)
      answer('a second answer is dropped')
    }
    const texts = (await Promise.all(answers)).map(String)
    t.same(
      texts,
      upTo(100).map(n => `answer ${n}`),
    )
  })

  test('calls arrive in order', 2, async (t, _rig, a, b) => {
    for (const target of [a, b]) {
      const got = []
      target.called = (request, answer) => {
        got.push(Number(request))
        answer('')
      }
      const { node, worker } = target.place
      for (let n = 0; n < 1000; n++) {
        if (n % 3 === 0) a.broker.control.call(node, worker, `${n}`, null)
        else a.broker.control.call(node, worker, `${n}`, () => {})
      }
      await a.call(target, '1000')
      t.same(got, upTo(1001, 0))
    }
  })

  test('a call fails if its handler throws', 2, async (t, _rig, a, b) => {
    b.called = () => {
      throw new Error('a fault of the handler')
    }
    t.equal(await failure(a.call(b, 'x')), errors.internal)
    a.broker.control.call(b.place.node, b.place.worker, 'nobody waits', null)
    b.called = (request, answer) => answer(request)
    t.equal(String(await a.call(b, 'y')), 'y')
  })

  test('`done` is not called before the call returns', 1, async (t, _rig, a) => {
    a.called = (_request, answer) => answer('')
    const { node, worker } = a.place
    for (const place of [
      [node, worker],
      ['nowhere', worker],
      [node, 999],
    ]) {
      let returned = false
      await new Promise(resolve => {
        a.broker.control.call(/** @type {any} */ (place[0]), /** @type {any} */ (place[1]), 'x', () => {
          t.ok(returned)
          resolve(undefined)
        })
        returned = true
      })
    }
  })

  test('a call to an unknown node or worker fails with not found', 1, async (t, _rig, a) => {
    a.called = (_request, answer) => answer('here')
    const { node, worker } = a.place
    t.equal(await failure(a.call({ place: { node: 'nowhere', worker } }, 'x')), errors.notFound)
    t.equal(await failure(a.call({ place: { node, worker: 999 } }, 'x')), errors.notFound)
    a.broker.control.call('nowhere', worker, 'x', null)
    a.broker.control.call(node, 999, 'x', null)
    t.equal(String(await a.call(a, 'x')), 'here')
  })

  test('calls to an exiting worker fail; its replacement gets new calls', 3, async (t, rig, a, b, c) => {
    const requests = []
    b.called = request => requests.push(String(request))
    c.called = (request, answer) => setTimeout(() => answer(request), 20)
    const lost = upTo(10).map(n => failure(a.call(b, `${n}`)))
    await until(() => requests.length >= 10)
    const kept = upTo(10).map(n => a.call(c, `${n}`))
    rig.cut(b.broker)
    const failures = await Promise.all(lost)
    t.same(
      failures,
      upTo(10).map(() => errors.notFound),
    )
    t.same((await Promise.all(kept)).map(Number), upTo(10), 'calls to other workers are not affected')
    t.equal(await failure(a.call(b, 'late')), errors.notFound)

    const next = await Peer.join(rig, b.place.worker)
    next.called = (request, answer) => answer(`next ${request}`)
    t.equal(String(await a.call(b, 'x')), 'next x')
  })

  test('a call during a replacement gets one result', 2, async (t, rig, a, b) => {
    for (let round = 0, worker = b; round < 5; round++) {
      worker.called = (request, answer) => answer(`${round}:${request}`)
      const results = []
      const wrong = []
      const cut = new Promise(resolve => setTimeout(resolve, 5)).then(() => rig.cut(worker.broker))
      const made = upTo(200).map(async n => {
        for (let i = 0; i < n % 7; i++) await new Promise(setImmediate)
        const result = await a.call(b, `${n}`).then(String, error => error)
        results.push(result)
        if (result !== errors.notFound && !result.endsWith(`:${n}`)) wrong.push([n, result])
      })
      await cut
      worker = await Peer.join(rig, b.place.worker)
      worker.called = (request, answer) => answer(`${round}:${request}`)
      await Promise.all(made)
      t.equal(results.length, 200)
      t.same(wrong, [], 'the result belongs to the call')
    }
  })

  test('calls of a disconnected caller fail', 2, async (t, rig, a, b) => {
    const requests = new Promise(resolve => {
      b.called = () => resolve(undefined)
    })
    const pending = failure(a.call(b, 'x'))
    await requests
    rig.cut(a.broker)
    t.equal(await pending, errors.internal)
    t.equal(await failure(a.call(b, 'x')), errors.internal)
  })
}
