import t from 'tap'
import { Users } from '../../../../src/channels/broker/embedded/control.js'

t.test('claims of an exited worker are released', async t => {
  const users = new Users()
  const claimed = ['a', 'a', 'b', 'b'].map(link => users.claim('u', 3, link))
  t.same(claimed, [true, true, true, false])
  users.removeLink('a')
  users.removeLink('a')
  const again = ['b', 'b', 'b'].map(link => users.claim('u', 3, link))
  t.same(again, [true, true, false])
  for (let i = 0; i < 5; i++) users.release('u', 'b')
  users.release('u', 'a')
  const last = ['a', 'a', 'a', 'a'].map(link => users.claim('u', 3, link))
  t.same(last, [true, true, true, false])
})
