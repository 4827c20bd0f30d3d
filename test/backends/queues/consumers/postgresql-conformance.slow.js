import t from 'tap'
import { startPostgres, withoutPostgres } from '../../../kit/servers/postgres.js'
import { conformance } from './conformance.js'

t.setTimeout(300_000)

t.test('postgresql', { skip: withoutPostgres() }, async t => {
  const server = await startPostgres(t)
  let tables = 0
  conformance(t, {
    type: 'postgresql',
    ordered: true,
    backlog: 20_000,
    restarts: true,
    async start() {
      const table = `outbox_${++tables}`
      await server.query(`CREATE TABLE ${table} (id bigserial PRIMARY KEY, method text, payload text,
        partition integer NOT NULL DEFAULT 0)`)
      return {
        port: server.port,
        consumer: port => ({
          dsn: server.dsn(port),
          outbox_table_name: table,
          partition_poll_interval: '100ms',
        }),
        async send(payloads) {
          await server.query(
            `INSERT INTO ${table} (payload) SELECT p FROM unnest($1::text[]) WITH ORDINALITY AS a (p, n) ORDER BY n`,
            [payloads],
          )
        },
        pending: async () => Number((await server.query(`SELECT count(*) AS n FROM ${table}`))[0].n),
        pause: () => server.pause(),
        resume: () => server.resume(),
        restart: () => server.restart(),
      }
    },
  })
})
