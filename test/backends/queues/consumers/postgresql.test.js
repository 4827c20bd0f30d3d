// Rows of an outbox table reach their handler, and leave the table when their command is finished.

import t from 'tap'
import { create } from '../../../../src/backends/queues/postgresql/consumer.js'
import { startPostgres, withoutPostgres } from '../../../kit/servers/postgres.js'
import { makeConsumer as make } from './rig.js'

/** Options of the type, with their defaults. */
const DEFAULTS = {
  dsn: '',
  outbox_table_name: 'outbox',
  num_partitions: 1,
  partition_select_limit: 100,
  partition_poll_interval: 300,
  partition_notification_channel: '',
  partition_notification_dsn: '',
  use_try_lock: false,
  tls: { enabled: false },
}

const TABLE = `CREATE TABLE outbox (
  id bigserial PRIMARY KEY, method text NOT NULL DEFAULT '', payload jsonb NOT NULL,
  partition integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now())`

/** @type {(t: any, options: object, handle?: (message: any) => any) => ReturnType<typeof make>} */
const makeConsumer = (t, options, handle) => make(t, create, { ...DEFAULTS, ...options }, handle)

t.test('an outbox in PostgreSQL', { skip: withoutPostgres() }, async t => {
  const server = await startPostgres(t)
  const dsn = server.dsn()
  const left = async () =>
    (await server.query('SELECT id FROM outbox ORDER BY id')).map(({ id }) => Number(id))
  const empty = async (/** @type {any} */ rig) => {
    await rig.consumer.stop()
    t.same(await left(), [])
  }
  const fresh = (table = TABLE) => server.query(`DROP TABLE IF EXISTS outbox; ${table}`)

  await t.test('rows come in their order, with their bytes and their time', async t => {
    await fresh()
    const payload = '{"data": {"price": 12345678901234567890.10, "text": "a\\u0001ü"}, "channel": "a"}'
    await server.query(
      `INSERT INTO outbox (method, payload) SELECT 'publish', '${payload}' FROM generate_series(1, 250)`,
    )
    const rig = makeConsumer(t, { dsn })
    await rig.consumer.start()
    await rig.until(() => rig.messages.length === 250)
    t.same(
      rig.messages.map(({ id }) => Number(id)),
      Array.from({ length: 250 }, (_, i) => i + 1),
    )
    t.equal(
      rig.messages[0].payload,
      '{"data": {"text": "a\\u0001ü", "price": 12345678901234567890.10}, "channel": "a"}',
    )
    t.equal(rig.messages[0].method, 'publish')
    t.ok(Math.abs(Date.now() - rig.messages[0].since) < 60_000)
    await empty(rig)
  })

  await t.test('a missing table is told once, and waited for', async t => {
    await server.query('DROP TABLE IF EXISTS outbox')
    const rig = makeConsumer(t, { dsn })
    await rig.consumer.start()
    await rig.until(() => rig.failures.length > 1)
    t.match(rig.failures[0].message, 'relation "outbox" does not exist')
    await server.query(`${TABLE}; INSERT INTO outbox (payload) VALUES ('{}')`)
    await rig.until(() => rig.messages.length === 1)
    t.match(
      rig.lines.filter(({ level }) => level === 'warn'),
      [{ outbox_table_name: 'outbox', msg: /no table of this name.*correct outbox_table_name/ }],
    )
    t.equal(rig.lines.filter(({ level }) => level === 'warn').length, 1)
    await empty(rig)
  })

  await t.test('a notification wakes the partition that it names', async t => {
    await fresh()
    const options = {
      dsn,
      num_partitions: 2,
      partition_notification_channel: 'Orders "x"',
      partition_poll_interval: 3e6,
    }
    const rig = makeConsumer(t, options)
    await rig.consumer.start()
    await rig.until(() => rig.lags.length > 0)
    for (const partition of [1, 0, 1]) {
      const seen = rig.messages.length
      await server.query(`INSERT INTO outbox (payload, partition) VALUES ('{}', ${partition})`)
      await server.query(`NOTIFY "Orders ""x""", '${partition}'`)
      await rig.until(() => rig.messages.length > seen)
    }
    for (const bad of ['2', '-1', 'x', '']) await server.query(`NOTIFY "Orders ""x""", '${bad}'`)
    await rig.until(() => rig.lines.length === 4)
    t.same(
      rig.lines.map(({ msg, payload }) => [msg, payload]),
      ['2', '-1', 'x', ''].map(text => ['notification names no partition of this consumer', text]),
    )
    await empty(rig)
  })

  await t.test(
    'a failed command keeps its row and those after it in its channel; NULLs stop nothing',
    async t => {
      await fresh(TABLE.replaceAll(' NOT NULL', '').replace('jsonb', 'text'))
      const rows = [
        ['publish', '{"channel":"a","n":1}'],
        ['publish', '{"channel":"b","n":2}'],
        ['publish', '{"channel":"a","n":3}'],
        [null, '{"method":"publish","payload":{"channel":"c","n":4}}'],
        ['publish', null],
      ]
      for (const row of rows) await server.query('INSERT INTO outbox (method, payload) VALUES ($1, $2)', row)
      let tries = 0
      const rig = makeConsumer(t, { dsn }, ({ id }) => (id === '1' && ++tries < 3 ? 'retry' : 'done'))
      await rig.consumer.start()
      await rig.until(() => rig.messages.filter(({ outcome }) => outcome === 'done').length === 5)
      const done = rig.messages.filter(({ outcome }) => outcome === 'done').map(({ id }) => id)
      t.equal(tries, 3)
      t.ok(done.indexOf('1') < done.indexOf('3'), 'the order of a channel')
      t.same([...done].sort(), ['1', '2', '3', '4', '5'], 'each row once')
      const [fourth, fifth] = ['4', '5'].map(found => rig.messages.find(({ id }) => id === found))
      t.equal(fourth.method, '')
      t.equal(fifth.payload, null)
      await empty(rig)
    },
  )

  await t.test('two nodes take turns, and each row is taken once', async t => {
    for (const use_try_lock of [false, true]) {
      await fresh(TABLE.replace('jsonb', 'bytea'))
      const nodes = [1, 2].map(() =>
        makeConsumer(t, { dsn, use_try_lock, partition_select_limit: 5, partition_poll_interval: 5 }),
      )
      for (const { consumer } of nodes) await consumer.start()
      const count = () => nodes[0].messages.length + nodes[1].messages.length
      for (let n = 1; n <= 10; n++) {
        await server.query("INSERT INTO outbox (payload) SELECT '\\x7b7d' FROM generate_series(1, 10)")
        if (n % 5 === 0) await Promise.race(nodes.map(node => node.until(() => count() === n * 10)))
      }
      for (const { consumer } of nodes) await consumer.stop()
      const ids = nodes.flatMap(({ messages }) => messages.map(({ id }) => Number(id)))
      t.same(
        ids.sort((a, b) => a - b),
        Array.from({ length: 100 }, (_, i) => i + 1),
      )
      t.same(nodes[0].failures.concat(nodes[1].failures), [])
      const any = nodes[0].messages[0] ?? nodes[1].messages[0]
      t.same(any.payload, Buffer.from('{}'))
      t.same(await left(), [])
    }
  })

  await t.test('rows that no loop takes are warned of, and rows that wait are counted', async t => {
    await fresh()
    await server.query("INSERT INTO outbox (payload, partition) SELECT '{}', 7 FROM generate_series(1, 3)")
    const rig = makeConsumer(t, { dsn })
    await rig.consumer.start()
    await rig.until(() => rig.lines.length > 0)
    t.match(rig.lines[0], { level: 'warn', partition: 7, num_partitions: 1 })
    t.equal(rig.lags[0], 3)
    await rig.consumer.stop()
    t.same(await left(), [1, 2, 3])
  })

  await t.test('a connection that is lost within a transaction repeats what was not deleted', async t => {
    await fresh()
    await server.query("INSERT INTO outbox (method, payload) SELECT 'x', '{}' FROM generate_series(1, 3)")
    let cut = false
    const rig = makeConsumer(t, { dsn }, async ({ id }) => {
      if (id === '2' && !cut) {
        cut = true
        await server.query(
          'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = $1',
          ['halley'],
        )
      }
      return 'done'
    })
    await rig.consumer.start()
    await rig.until(() => rig.messages.length === 6)
    t.same(
      rig.messages.map(({ id }) => id),
      ['1', '2', '3', '1', '2', '3'],
    )
    t.ok(rig.failures.length > 0)
    await empty(rig)
  })
})

t.test('a server out of reach refuses the start', async t => {
  const rig = makeConsumer(t, { dsn: 'postgres://app:hush@127.0.0.1:1/db' })
  const error = await rig.consumer.start().then(
    () => null,
    (/** @type {Error} */ fault) => fault,
  )
  t.match(error?.message, 'ECONNREFUSED')
  t.notMatch(error?.message, 'hush')
})
