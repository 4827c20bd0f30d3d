import t from 'tap'
import { mockSnapshots } from '../../metrics/mock.js'
import { lines, startAdmin } from './rig.js'

t.test('a history too long for one line loses its oldest part', async t => {
  const admin = await startAdmin(t)
  admin.view.history = mockSnapshots({ seconds: 600, workers: 8 })
  const whole = JSON.stringify(admin.view.history).length
  t.ok(whole > 5 * 1024 * 1024)
  const { history } = (await lines(await admin.stream(await admin.token())).next()).value
  t.ok(history.length > 100)
  t.ok(JSON.stringify(history).length <= 4 * 1024 * 1024)
  t.same(history.at(-1), JSON.parse(JSON.stringify(admin.view.history.at(-1))))
  t.equal(history[0].seq, 601 - history.length)
})
