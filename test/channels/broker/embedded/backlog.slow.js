// The backlog of an exited worker.

import { EventEmitter } from 'node:events'
import t from 'tap'
import { Frame, FrameWriter } from '../../../../src/channels/broker/embedded/frames.js'
import { until } from '../../../kit/wait.js'
import { upTo } from '../conformance/peer.js'
import { startEmbedded } from './rig.js'

const payload = `"${'x'.repeat(1_000_000)}"`

/** A socket whose bytes are forwarded by the test, all in one turn of the event loop. */
class Wire extends EventEmitter {
  destroyed = false
  writableLength = 0
  paused = false
  /** @type {Buffer[]} */
  written = []

  write(/** @type {Buffer} */ bytes) {
    this.written.push(Buffer.from(bytes))
    return true
  }

  pause() {
    this.paused = true
  }

  resume() {
    this.paused = false
  }
}

t.test('removing the channels of an exited worker delays no other worker', async t => {
  const { host } = await startEmbedded(t)
  const [gone, sender] = [new Wire(), new Wire()]
  host.attach(/** @type {any} */ (gone), 'gone', 1)
  host.attach(/** @type {any} */ (sender), 'sender', 2)
  const frames = async write => {
    const bytes = new Wire()
    write(new FrameWriter(/** @type {any} */ (bytes)))
    await until(() => bytes.written.length > 0)
    return Buffer.concat(bytes.written)
  }
  const wants = JSON.stringify({ first: true, position: false, recover: null, client: '' })
  const names = [...upTo(50_000).map(n => `c${n}`), 'flood']
  const subscribes = await frames(writer => {
    for (const name of names) writer.begin(Frame.SUBSCRIBE).u32(0).string(name).string(wants).end()
  })
  const publish = await frames(writer =>
    writer.begin(Frame.PUBLISH).u32(1).u8(0).f64(0).epoch('').string('flood').string(payload).end(),
  )
  gone.emit('data', subscribes)
  gone.destroyed = true
  gone.emit('close')
  t.ok(host.subscribed > 0, 'its channels are still there')
  sender.emit('data', Buffer.concat(upTo(17).map(() => publish)))
  t.equal(sender.paused, false)
})
