import t from 'tap'
import { startPostgres, withoutPostgres } from '../servers/postgres.js'
import { conformance } from './conformance.js'

t.setTimeout(300_000)

const skip = withoutPostgres()
if (skip) t.plan(0, String(skip))
else
  conformance(t, {
    type: 'postgresql',
    ordered: true,
    backlog: 100_000,
    restarts: true,
    async start(t) {
      const server = await startPostgres(t)
      await server.query(`CREATE TABLE outbox (id bigserial PRIMARY KEY, method text, payload text,
        partition integer NOT NULL DEFAULT 0)`)
      return {
        port: server.port,
        consumer: port => ({
          name: 'jobs',
          enabled: true,
          type: 'postgresql',
          postgresql: {
            dsn: server.dsn(port),
            outbox_table_name: 'outbox',
            partition_poll_interval: '100ms',
          },
        }),
        async send(payloads) {
          await server.query(
            `INSERT INTO outbox (payload) SELECT p FROM unnest($1::text[]) WITH ORDINALITY AS a (p, n) ORDER BY n`,
            [payloads],
          )
        },
        pending: async () => Number((await server.query('SELECT count(*) AS n FROM outbox'))[0].n),
        pause: () => server.pause(),
        resume: () => server.resume(),
        restart: () => server.restart(),
      }
    },
  })
