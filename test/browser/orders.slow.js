// The orders of examples/orders in a browser, with a real PostgreSQL, as its README.md describes: the page shows every
// change of the table.

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { needsChromium } from '../kit/browser/browser.js'
import { RemotePage } from '../kit/browser/remote-page.js'
import { startGateway } from '../kit/gateway.js'
import { startProgram } from '../kit/programs.js'
import { startPostgres, withoutPostgres } from '../kit/servers/postgres.js'
import { until } from '../kit/wait.js'

needsChromium(t)

const folder = new URL('../../examples/orders/', import.meta.url)
const ROWS = `[...document.querySelectorAll('#orders tr')].map(({ cells }) =>
  [...cells].slice(0, 3).map(({ textContent }) => textContent).join(' ')).join(', ')`

t.test('the page shows every change of an order', { skip: withoutPostgres() }, async t => {
  const database = await startPostgres(t)
  await database.query(await readFile(new URL('schema.sql', folder), 'utf8'))
  const { channel, consumers } = JSON.parse(await readFile(new URL('halley.json', folder), 'utf8'))
  consumers[0].postgresql.dsn = database.dsn()
  // Options that the helper sets for other tests are left to the profile.
  const client = { allowed_origins: undefined, ping_interval: undefined }
  const gateway = await startGateway(t, { workers: 1, client, channel, consumers }, { args: ['--dev'] })
  const env = { PORT: '0', GATEWAY: gateway.url, DATABASE_URL: database.dsn() }
  const program = fileURLToPath(new URL('server.mjs', folder))
  const { line } = await startProgram(t, program, env)
  const [url] = /** @type {string[]} */ (/http:\S+/.exec(line))

  await database.query(`INSERT INTO orders (customer) VALUES ('Ann')`)
  const page = await RemotePage.open(t, url)
  const shows = rows => page.until(`${ROWS} === ${JSON.stringify(rows)}`)
  await page.until(`document.getElementById('state').textContent === 'connected'`)
  await shows('1 Ann new')
  await page.fill({ customer: '<b>Ben' }, 'order')
  await shows('2 <b>Ben new, 1 Ann new')
  await page.evaluate(`document.querySelector('#orders button').click()`)
  await shows('2 <b>Ben paid, 1 Ann new')

  await database.query(`BEGIN; UPDATE orders SET state = 'cancelled'; ROLLBACK`)
  await database.query(`UPDATE orders SET state = 'shipped' WHERE id = 1`)
  await shows('2 <b>Ben paid, 1 Ann shipped')

  // Rows committed while nothing listens wait in the outbox.
  await database.restart()
  await database.query(`UPDATE orders SET state = 'cancelled' WHERE id = 2`)
  await shows('2 <b>Ben cancelled, 1 Ann shipped')
  await until(async () => (await database.query('SELECT 1 FROM outbox')).length === 0)
  t.same(page.faults, [])
  t.match(await gateway.stop(), { code: 0 })
})
