// Rows of an outbox in PostgreSQL are published by a gateway, in their order, and leave the table.

import t from 'tap'
import { startGateway } from '../../../kit/gateway.js'
import { startPostgres, withoutPostgres } from '../../../kit/servers/postgres.js'
import { until } from '../../../kit/wait.js'

t.test(
  'rows become publications; those of an outage of the database too',
  { skip: withoutPostgres() },
  async t => {
    const server = await startPostgres(t)
    await server.query(`CREATE TABLE outbox (id bigserial PRIMARY KEY, method text NOT NULL, payload jsonb NOT NULL,
    partition integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now())`)
    const gateway = await startGateway(t, {
      channel: { without_namespace: { history_size: 1000, history_ttl: '10m' } },
      consumers: [
        {
          name: 'orders',
          enabled: true,
          type: 'postgresql',
          postgresql: {
            dsn: server.dsn(),
            outbox_table_name: 'outbox',
            partition_notification_channel: 'outbox',
          },
        },
      ],
    })
    const insert = (/** @type {number} */ from, /** @type {number} */ to) =>
      server.query(`INSERT INTO outbox (method, payload) SELECT 'publish', jsonb_build_object('channel', 'orders',
      'data', n, 'idempotency_key', 'order ' || n) FROM generate_series(${from}, ${to}) AS n; NOTIFY outbox, '0'`)
    const published = async () => {
      const { result } = await gateway.api('history', { channel: 'orders', limit: -1 })
      return result.publications.map((/** @type {any} */ { data }) => data)
    }
    const numbers = (/** @type {number} */ to) => Array.from({ length: to }, (_, i) => i + 1)

    await server.query(
      `INSERT INTO outbox (method, payload) VALUES ('publsh', '{}'), ('publish', '{"channel": ""}')`,
    )
    await insert(1, 200)
    await until(async () => (await published()).length === 200)
    t.same(await published(), numbers(200))
    await until(async () => (await server.query('SELECT 1 FROM outbox')).length === 0)

    await insert(201, 250)
    await server.restart()
    await insert(251, 300)
    await until(async () => (await published()).length >= 300)
    t.same(await published(), numbers(300))
    await until(async () => (await server.query('SELECT 1 FROM outbox')).length === 0)
    t.match(await gateway.stop(), { code: 0 })
  },
)
