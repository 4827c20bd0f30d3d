import t from 'tap'
import { Users } from '../../../../src/channels/broker/embedded/control.js'

t.test('a worker that dies gives back what it claimed, and nothing else', async t => {
  const users = new Users()
  t.same(
    ['a', 'a', 'b', 'b'].map(link => users.claim('u', 3, link)),
    [true, true, true, false],
  )
  users.removeLink('a')
  users.removeLink('a')
  t.same(
    ['b', 'b', 'b'].map(link => users.claim('u', 3, link)),
    [true, true, false],
  )
  for (let i = 0; i < 5; i++) users.release('u', 'b')
  users.release('u', 'a')
  t.same(
    ['a', 'a', 'a', 'a'].map(link => users.claim('u', 3, link)),
    [true, true, true, false],
  )
})
