// Appended parts of map values, in raw frames: who gets parts, and who whole values.

import t from 'tap'
import { drivers, onDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { commandFrame } from '../protocol/sdk-messages.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import { config } from './sdk.js'

/** The client joins parts itself. */
const APPEND = { flag: 2 ** 30 }
const TOKENS = 1000

/**
 * An append of a Protobuf client: the SDK has no such field.
 * @param {ProtobufClient} client @param {string} channel @param {string | Buffer} data short @returns {Promise<any>} its reply
 */
function appendBytes(client, channel, data) {
  const id = ++client.lastId
  const publish = { channel, type: 1, key: 'k', data: Buffer.from(data) }
  // Lengths of the command and of `publish`, its last field; then field 102, true.
  const frame = Buffer.concat([commandFrame({ id, publish }), Buffer.from([0xb0, 0x06, 1])])
  frame[0] += 3
  frame[4] += 3
  client.sendBytes(frame)
  return client.next(reply => reply.id === id)
}

for (const driver of drivers)
  t.test(driver, async t => {
    const gateway = await startGateway(t, onDriver(driver, config))
    const channel = 'board:tokens'
    const append = async data => {
      const params = { channel, key: 'answer', data, append: true }
      const response = await fetch(`${gateway.url}/api/map_publish`, {
        method: 'POST',
        body: JSON.stringify(params),
      })
      return (await response.json()).result.offset
    }
    /** @param {object} request of connect */
    const watch = async request => {
      const client = await RawClient.connected(gateway.ws, request)
      t.teardown(() => client.socket.terminate())
      const reply = await client.call('subscribe', { channel, type: 1, phase: 2 })
      t.match(reply.subscribe, { type: 1, recoverable: true })
      const seen = { client, bytes: 0, pushes: 0, value: '', offset: 0, whole: 0 }
      client.socket.on('message', data => {
        seen.bytes += Buffer.byteLength(String(data))
        for (const line of String(data).split('\n')) {
          const { push } = JSON.parse(line)
          if (push?.pub === undefined) continue
          seen.pushes++
          if (!push.pub.append) seen.whole++
          seen.value = push.pub.append ? seen.value + push.pub.data : push.pub.data
          seen.offset = push.pub.offset ?? seen.offset
        }
      })
      return seen
    }

    const parts = await watch(APPEND)
    const whole = await watch({})
    let expected = ''
    let offset = 0
    for (let n = 0; n < TOKENS; n++) {
      const token = `t${String(n).padStart(3, '0')}`
      expected += token
      offset = await append(token)
    }
    for (const seen of [parts, whole])
      await until(
        () => seen.value === expected,
        () => `the whole value, has ${seen.value.length} characters`,
      )
    t.equal(parts.pushes, TOKENS)
    t.equal(parts.whole, 1, 'the first part is the value')
    t.equal(parts.offset, offset)
    t.ok(parts.bytes <= 100 * TOKENS, `${parts.bytes / TOKENS} bytes per token`)
    t.ok(whole.pushes < TOKENS / 2, `${whole.pushes} whole values`)
    t.equal(whole.whole, whole.pushes)
  })

t.test('bytes of a Protobuf client extend bytes, also those that are JSON', async t => {
  const gateway = await startGateway(t, config)
  const [writer, reader] = await Promise.all([1, 2].map(() => ProtobufClient.connected(gateway.ws)))
  t.teardown(() => [writer, reader].map(({ socket }) => socket.terminate()))
  const append = async (channel, parts) => {
    for (const part of parts) t.match(await appendBytes(writer, channel, part), { publish: {} }, String(part))
  }
  const read = async channel => {
    const { subscribe } = await reader.call('subscribe', { channel, type: 1, phase: 2 })
    return subscribe.state[0].data
  }
  const bytes = [Buffer.from([255, 0]), '1', '{}', '"a"', 'null', '2\n3', '"b"']
  await append('board:bytes', bytes)
  t.same(await read('board:bytes'), Buffer.concat(bytes.map(part => Buffer.from(part))))
  await append('board:digits', ['1', '2', 'x'])
  t.same(String(await read('board:digits')), '12x')
  await append('board:string', ['"a"', '"b"'])
  t.same(String(await read('board:string')), '"ab"')
  t.match(await appendBytes(writer, 'board:string', '1'), { error: { code: 107 } })
})
