// gRPC proxies and servers that break the rules, or do not answer.

import { once } from 'node:events'
import http2 from 'node:http2'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { CallFailed } from '../../../src/clients/hooks/contract.js'
import { HookEvent } from '../../../src/clients/hooks/events.js'
import { event, fails, framed, reply, startHttp2, startProxies } from './proxy-rig.js'

t.test('servers that violate the gRPC protocol', async t => {
  /** @type {(stream: http2.ServerHttp2Stream) => void} */
  let answer = () => {}
  const { sessions, endpoint } = await startHttp2(t, stream => answer(stream))
  const { rpc } = startProxies(t, { endpoint, max_response_size: 4096, breaker: { failures: 0 } })
  const head = { ':status': 200, 'content-type': 'application/grpc' }
  const gzip = { 'grpc-encoding': 'gzip' }
  /** @type {[string, typeof answer, string][]} */
  const cases = [
    ['HTTP 503', stream => stream.respond({ ':status': 503 }, { endStream: true }), 'unavailable'],
    ['HTTP 404', stream => stream.respond({ ':status': 404 }, { endStream: true }), 'status'],
    ['no status', stream => stream.respond(head, { endStream: true }), 'status'],
    ['no message', stream => stream.respond({ ...head, 'grpc-status': '0' }, { endStream: true }), 'status'],
    [
      'an unknown status',
      stream => stream.respond({ ...head, 'grpc-status': '99' }, { endStream: true }),
      'status',
    ],
    ['a reset', stream => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR), 'status'],
    ['broken gzip', stream => reply(stream, framed(Buffer.from('no gzip'), 1), gzip), 'status'],
    ['large gzip', stream => reply(stream, framed(gzipSync(Buffer.alloc(100_000)), 1), gzip), 'size'],
    ['a large length', stream => reply(stream, Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1])), 'size'],
    ['a closed connection', () => sessions.at(-1)?.destroy(), 'unreachable'],
  ]
  for (const [name, each, kind] of cases) {
    answer = each
    await t.test(name, t => fails(t, rpc.call(event()), kind))
  }
  answer = stream => reply(stream, framed(gzipSync(Buffer.from([0x0a, 3, 0x0a, 1, 0x31])), 1), gzip)
  t.equal(String((await rpc.call(event())).data.data), '1', 'compressed')
})

t.test('connections', async t => {
  /** @type {(stream: http2.ServerHttp2Stream) => void} */
  let answer = stream => reply(stream, framed(Buffer.alloc(0)))
  const { sessions, endpoint } = await startHttp2(t, stream => answer(stream))
  const { rpc, close } = startProxies(t, { endpoint, breaker: { failures: 0 } })
  await rpc.call(event())
  t.equal(sessions.length, 1)

  await t.test('a connection on which all calls time out is replaced', async t => {
    answer = () => {}
    const late = new CallFailed('timed out', 'timeout')
    for (let i = 0; i < 5; i++) {
      const hookEvent = event()
      const call = rpc.call(hookEvent)
      HookEvent.abort(hookEvent, late)
      await fails(t, call, 'timeout')
    }
    answer = stream => reply(stream, framed(Buffer.alloc(0)))
    await rpc.call(event())
    t.equal(sessions.length, 2)
    if (!sessions[0].closed) await once(sessions[0], 'close')
  })

  await t.test('connections close after a reload, when their calls have ended', async t => {
    let waiting
    const received = new Promise(resolve => {
      answer = stream => {
        waiting = stream
        resolve(stream)
      }
    })
    const call = rpc.call(event())
    await received
    const closed = close()
    reply(/** @type {any} */ (waiting), framed(Buffer.alloc(0)))
    t.strictSame(await call, {})
    await closed
    if (!sessions[1].closed) await once(sessions[1], 'close')
  })
})
