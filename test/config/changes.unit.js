import t from 'tap'
import { changesBetween, withChanges } from '../../src/config/changes.js'
import { loadConfig } from '../../src/config/load.js'
import { options } from '../../src/config/options.js'

const load = base => loadConfig({ base }).config
const before = load({ admin: { password: 'a' }, channel: { namespaces: [{ name: 'aa' }] } })
const after = load({
  http_server: { port: 9000, driver: 'node' },
  http_api: { key: 'new' },
  client: { allowed_origins: ['https://a.example'] },
  channel: { namespaces: [{ name: 'aa', presence: true }] },
})

t.test('every option declares how its changes apply', async t => {
  t.strictSame([...new Set(options.map(({ change }) => change))].sort(), ['live', 'start', 'workers'])
  // Connections of the engine, of the lifecycle log, of the status of users and of the denylist are opened once.
  const opened = /^(?:engine|lifecycle|user_status|user_block|token_revoke|user_tokens_invalidate)\./
  const liveSecrets = options.filter(({ secret, path }) => secret && !opened.test(path))
  for (const { path, change } of liveSecrets) t.equal(change, 'live', path)
})

t.test('changes are listed by their effect', async t => {
  t.strictSame(changesBetween(before, before), { live: [], workers: [], start: [] })
  t.strictSame(changesBetween(before, after), {
    live: ['http_api.key', 'client.allowed_origins', 'channel.namespaces'],
    workers: ['admin.password'],
    start: ['http_server.port', 'http_server.driver'],
  })
  const rotated = load({ admin: { password: 'b' }, channel: { namespaces: [{ name: 'aa' }] } })
  t.strictSame(changesBetween(before, rotated), { live: ['admin.password'], workers: [], start: [] })
})

t.test('withChanges() applies only the requested kinds of changes', async t => {
  t.strictSame(withChanges(before, after, []), before)
  t.strictSame(withChanges(before, after, ['live', 'workers', 'start']), after)
  const live = withChanges(before, after, ['live'])
  t.strictSame(live.client.allowed_origins, ['https://a.example'])
  t.strictSame(live.channel.namespaces, after.channel.namespaces)
  t.equal(live.http_server.port, 8000)
  t.equal(live.admin.password, 'a', 'it switches endpoints')
  t.strictSame(changesBetween(live, after), {
    live: [],
    workers: ['admin.password'],
    start: ['http_server.port', 'http_server.driver'],
  })
})
