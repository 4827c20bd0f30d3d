import { EventEmitter } from 'node:events'
import t from 'tap'
import { messageFrom } from '../../bench/messages.js'

t.test('messages of one type are awaited in turn, without listeners left', async t => {
  const child = /** @type {any} */ (new EventEmitter())
  for (let n = 0; n < 3; n++) {
    const next = messageFrom(child, 'offsets')
    child.emit('message', { type: 'ready' })
    child.emit('message', { type: 'offsets', n })
    t.same(await next, { type: 'offsets', n })
    t.equal(child.listenerCount('message') + child.listenerCount('exit'), 0)
  }
})

t.test('an error, and the end of the process, end the waiting', async t => {
  const child = /** @type {any} */ (new EventEmitter())
  const failed = messageFrom(child, 'ready')
  child.emit('message', { type: 'error', message: '2 of 3 clients could not connect' })
  await t.rejects(failed, { message: '2 of 3 clients could not connect' })
  for (const [code, signal, text] of /** @type {const} */ ([
    [1, null, 'exit code 1'],
    [null, 'SIGKILL', 'SIGKILL'],
  ])) {
    const ended = messageFrom(child, 'ready')
    child.emit('exit', code, signal)
    await t.rejects(ended, { message: `a process with clients ended with ${text}` })
  }
  t.same(child.eventNames(), [])
})
