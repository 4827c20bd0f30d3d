import { backlogConformance } from './conformance/backlog.js'
import { closingConformance } from './conformance/closing.js'
import { compressionConformance } from './conformance/compression.js'
import { httpConformance } from './conformance/http.js'
import { listeningConformance } from './conformance/listening.js'
import { slowStreamConformance } from './conformance/slow-streams.js'
import { streamConformance } from './conformance/streams.js'
import { textConformance } from './conformance/text.js'
import { webSocketConformance } from './conformance/websocket.js'

/** Tests of src/clients/server/contract.js; slow ones are in conformance/slow-clients.js. */
export function conformance(t, driver) {
  t.test('listening', async t => listeningConformance(t, driver))
  t.test('text', async t => textConformance(t, driver))
  t.test('HTTP', async t => httpConformance(t, driver))
  t.test('streams', async t => streamConformance(t, driver))
  t.test('slow readers of streams', async t => slowStreamConformance(t, driver))
  t.test('WebSocket', async t => webSocketConformance(t, driver))
  t.test('compression', async t => compressionConformance(t, driver))
  t.test('backlog', async t => backlogConformance(t, driver))
  t.test('closing', async t => closingConformance(t, driver))
}
