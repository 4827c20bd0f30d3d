import t from 'tap'
import { ClientReports } from '../../../src/processes/worker/reports.js'

const session = user => /** @type {any} */ ({ id: `id of ${user}`, user, transport: { name: 'sse' } })

t.test(
  'reports are sent in batches, one message at a time; excess reports are dropped and counted',
  async t => {
    const sent = []
    const done = []
    const reports = new ClientReports((message, left) => {
      sent.push(message)
      done.push(left)
    })
    t.equal(reports.observer, null, 'no listeners')
    reports.on = true
    const observer = /** @type {any} */ (reports.observer)
    observer.connected(session('anna'))
    observer.disconnected(session('anna'), { code: 3001, reason: 'shutdown' })
    reports.flush()
    const about = { client: 'id of anna', user: 'anna', transport: 'sse' }
    t.same(sent, [
      {
        type: 'clients',
        dropped: 0,
        reports: [
          { event: 'connected', about },
          { event: 'disconnected', about: { ...about, code: 3001, reason: 'shutdown' } },
        ],
      },
    ])

    for (let n = 0; n < 10_000; n++) observer.connected(session('b'.repeat(800)))
    reports.flush()
    t.equal(sent.length, 1, 'the first message is in flight')
    done[0]()
    const [, { reports: kept, dropped }] = sent
    t.equal(kept.length, 1048)
    t.equal(kept.length + dropped, 10_000)
    observer.connected(session('carl'))
    done[1]()
    t.match(sent[2], { dropped: 0, reports: [{ about: { user: 'carl' } }] })
    done[2]()
    t.equal(sent.length, 3, 'nothing waits')
  },
)
