// Each of them on one of the two socket servers, which answer HTTP in different ways: with lengths, and in chunks.
// The other halves and the pings are in conformance.slow.js.

import t from 'tap'
import { defaultDriver } from '../../kit/drivers.js'
import { testDriver } from './conformance.js'

t.test(`driver ${defaultDriver}`, t =>
  testDriver(t, defaultDriver, ['websocket', 'long_poll', 'uni_http_stream', 'uni_sse']),
)
t.test('driver node', t => testDriver(t, 'node', ['http_stream', 'sse', 'uni_websocket']))
