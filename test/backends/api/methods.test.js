import t from 'tap'
import { clientOf, embed, methodsSuite } from './methods-suite.js'

const gateway = await embed(t)
t.test('gateway object', async t => methodsSuite(t, gateway, gateway, 'own'))
t.test('HTTP client', async t => methodsSuite(t, gateway, clientOf(t, gateway), 'http'))

t.test('pending calls of the gateway object are bounded in bytes', async t => {
  const large = 'x'.repeat(13 * 1024 * 1024)
  const calls = await Promise.allSettled(Array.from({ length: 6 }, () => gateway.publish('large', large)))
  const refused = calls.flatMap(call => (call.status === 'rejected' ? [call.reason] : []))
  t.equal(refused.length, 2)
  for (const error of refused)
    t.match(error, { name: 'ApiError', code: 111, message: /too many requests: calls of \d+ bytes/ })
  t.match(await gateway.publish('large', 'small'), { offset: 0 })
})
