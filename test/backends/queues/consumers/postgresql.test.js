// Rows of an outbox table reach their handler, and leave the table when their command is finished.

import t from 'tap'
import { startPostgres, withoutPostgres } from '../../../kit/servers/postgres.js'
import { until } from '../../../kit/wait.js'
import { numbers, pluck } from '../../lists.js'
import { makeConsumer, numbered, startConsumer } from './rig.js'

const TABLE = `CREATE TABLE outbox (
  id bigserial PRIMARY KEY, method text NOT NULL DEFAULT '', payload jsonb NOT NULL,
  partition integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now())`

t.test('an outbox in PostgreSQL', { skip: withoutPostgres() }, async t => {
  const server = await startPostgres(t)
  const block = more => ({ dsn: server.dsn(), outbox_table_name: 'outbox', ...more })
  const start = (t, more, handle) => startConsumer(t, 'postgresql', block(more), handle)
  const left = async () =>
    (await server.query('SELECT id FROM outbox ORDER BY id')).map(({ id }) => Number(id))
  const empty = async rig => {
    await rig.consumer.stop()
    t.same(await left(), [])
  }
  const fresh = (table = TABLE) => server.query(`DROP TABLE IF EXISTS outbox; ${table}`)

  await t.test('rows arrive in order, with their bytes and time', async t => {
    await fresh()
    const payload = '{"data": {"price": 12345678901234567890.10, "text": "a\\u0001ü"}, "channel": "a"}'
    await server.query(
      `INSERT INTO outbox (method, payload) SELECT 'publish', '${payload}' FROM generate_series(1, 250)`,
    )
    const rig = await start(t, {})
    await until(() => rig.messages.length === 250)
    t.same(pluck(rig.messages, 'id'), numbered(251).slice(1))
    t.equal(
      rig.messages[0].payload,
      '{"data": {"text": "a\\u0001ü", "price": 12345678901234567890.10}, "channel": "a"}',
    )
    t.equal(rig.messages[0].method, 'publish')
    t.ok(Math.abs(Date.now() - rig.messages[0].since) < 60_000)
    await empty(rig)
  })

  await t.test('a missing table is reported once; the consumer waits for it', async t => {
    await server.query('DROP TABLE IF EXISTS outbox')
    const rig = await start(t, {})
    await until(() => rig.failures.length > 1)
    t.match(rig.failures[0].message, 'relation "outbox" does not exist')
    await server.query(`${TABLE}; INSERT INTO outbox (payload) VALUES ('{}')`)
    await until(() => rig.messages.length === 1)
    t.match(
      rig.lines.filter(({ level }) => level === 'warn'),
      [{ outbox_table_name: 'outbox', msg: /outbox table does not exist.*correct outbox_table_name/ }],
    )
    t.equal(rig.lines.filter(({ level }) => level === 'warn').length, 1)
    await empty(rig)
  })

  await t.test('a notification wakes its partition', async t => {
    await fresh()
    const rig = await start(t, {
      num_partitions: 2,
      partition_notification_channel: 'Orders "x"',
      partition_poll_interval: '50m',
    })
    await until(() => rig.lags.length > 0)
    for (const partition of [1, 0, 1]) {
      const seen = rig.messages.length
      await server.query(`INSERT INTO outbox (payload, partition) VALUES ('{}', ${partition})`)
      await server.query(`NOTIFY "Orders ""x""", '${partition}'`)
      await until(() => rig.messages.length > seen)
    }
    for (const bad of ['2', '-1', 'x', '']) await server.query(`NOTIFY "Orders ""x""", '${bad}'`)
    await until(() => rig.lines.length === 4)
    t.same(
      rig.lines.map(({ msg, payload }) => [msg, payload]),
      ['2', '-1', 'x', ''].map(text => ['notification for an unknown partition', text]),
    )
    await empty(rig)
  })

  await t.test('a failed command keeps its row and later rows of its channel; NULLs are skipped', async t => {
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
    const rig = await start(t, {}, ({ id }) => (id === '1' && ++tries < 3 ? 'retry' : 'done'))
    await until(() => rig.done.length === 5)
    const done = rig.done.map(({ id }) => id)
    t.equal(tries, 3)
    t.ok(done.indexOf('1') < done.indexOf('3'), 'the order of a channel')
    t.same([...done].sort(), ['1', '2', '3', '4', '5'], 'each row once')
    const [fourth, fifth] = ['4', '5'].map(found => rig.messages.find(({ id }) => id === found))
    t.equal(fourth.method, '')
    t.equal(fifth.payload, null)
    await empty(rig)
  })

  await t.test('two nodes share the partitions; each row is processed once', async t => {
    for (const use_try_lock of [false, true]) {
      await fresh(TABLE.replace('jsonb', 'bytea'))
      const more = { use_try_lock, partition_select_limit: 5, partition_poll_interval: '5ms' }
      const nodes = [await start(t, more), await start(t, more)]
      const count = () => nodes[0].messages.length + nodes[1].messages.length
      for (let n = 1; n <= 10; n++) {
        await server.query("INSERT INTO outbox (payload) SELECT '\\x7b7d' FROM generate_series(1, 10)")
        if (n % 5 === 0) await until(() => count() === n * 10)
      }
      for (const { consumer } of nodes) await consumer.stop()
      const ids = nodes.flatMap(({ messages }) => messages.map(({ id }) => Number(id)))
      t.same(
        ids.sort((a, b) => a - b),
        numbers(100, 1),
      )
      t.same(nodes[0].failures.concat(nodes[1].failures), [])
      const any = nodes[0].messages[0] ?? nodes[1].messages[0]
      t.same(any.payload, Buffer.from('{}'))
      t.same(await left(), [])
    }
  })

  await t.test('rows outside all partitions cause a warning, and pending rows are counted', async t => {
    await fresh()
    await server.query("INSERT INTO outbox (payload, partition) SELECT '{}', 7 FROM generate_series(1, 3)")
    const rig = await start(t, {})
    await until(() => rig.lines.length > 0)
    t.match(rig.lines[0], { level: 'warn', partition: 7, num_partitions: 1 })
    t.equal(rig.lags[0], 3)
    await rig.consumer.stop()
    t.same(await left(), [1, 2, 3])
  })

  await t.test('a connection lost in a transaction repeats the rows that were not deleted', async t => {
    await fresh()
    await server.query("INSERT INTO outbox (method, payload) SELECT 'x', '{}' FROM generate_series(1, 3)")
    let cut = false
    const rig = await start(t, {}, async ({ id }) => {
      if (id === '2' && !cut) {
        cut = true
        await server.query(
          'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = $1',
          ['halley'],
        )
      }
      return 'done'
    })
    await until(() => rig.messages.length === 6)
    t.same(pluck(rig.messages, 'id'), ['1', '2', '3', '1', '2', '3'])
    t.ok(rig.failures.length > 0)
    await empty(rig)
  })
})

t.test('an unreachable server fails the start', async t => {
  const block = { dsn: 'postgres://app:hush@127.0.0.1:1/db', outbox_table_name: 'outbox' }
  const rig = await makeConsumer(t, 'postgresql', block)
  const error = await rig.consumer.start().then(
    () => null,
    fault => fault,
  )
  t.match(error?.message, 'ECONNREFUSED')
  t.notMatch(error?.message, 'hush')
})
