// The backend of the orders page. It only writes orders to the database and does not call the gateway.
//
//   DATABASE_URL=postgres://... node server.mjs      then open http://localhost:5173/
//
// GATEWAY of the page (http://localhost:8000), PORT (5173; 0 picks a free one)

import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const { DATABASE_URL = '', GATEWAY = 'http://localhost:8000', PORT = '5173' } = process.env
const MAX_BODY = 10_000
const NEXT = { new: 'paid', paid: 'packed', packed: 'shipped' }

/** Prints an error with instructions and exits. */
function fail(text) {
  console.error(text)
  process.exit(1)
}

if (DATABASE_URL === '') fail('DATABASE_URL is not set: postgres://USER:PASSWORD@HOST:5432/DATABASE')
const { default: pg } = await import('pg').catch(() =>
  fail('the client of PostgreSQL is not installed: npm install pg@8'),
)
const database = new pg.Pool({ connectionString: DATABASE_URL, max: 4, connectionTimeoutMillis: 5000 })
// An idle connection was lost; the next query opens a new one.
database.on('error', error => console.error(error.message))

/** @returns the posted JSON, null if it is invalid or too long */
async function bodyOf(request) {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) {
    body += chunk
    if (body.length > MAX_BODY) return null
  }
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}

/** @returns {Promise<[status: number, type: string, body: string]>} */
async function answer(request) {
  const { method, url } = request
  const route = `${method} ${url}`
  if (route === 'GET /') {
    const page = await readFile(new URL('page.html', import.meta.url), 'utf8')
    return [200, 'text/html; charset=utf-8', page.replaceAll('GATEWAY', GATEWAY)]
  }
  if (route === 'GET /orders') {
    const { rows } = await database.query(
      'SELECT to_jsonb(orders) AS data FROM orders ORDER BY id DESC LIMIT 100',
    )
    return [200, 'application/json', JSON.stringify(rows.map(({ data }) => data))]
  }
  if (route === 'POST /orders') {
    const { customer } = (await bodyOf(request)) ?? {}
    if (typeof customer !== 'string' || customer === '' || customer.length > 100)
      return [400, 'text/plain', 'a customer has 1 to 100 characters']
    await database.query('INSERT INTO orders (customer) VALUES ($1)', [customer])
    return [204, 'text/plain', '']
  }
  if (route === 'POST /advance') {
    const { id, state } = (await bodyOf(request)) ?? {}
    if (!Number.isSafeInteger(id) || !Object.hasOwn(NEXT, state))
      return [400, 'text/plain', 'an order has an id and a state']
    // Only from the state that the page shows: a double click is one step.
    await database.query('UPDATE orders SET state = $3 WHERE id = $1 AND state = $2', [
      id,
      state,
      NEXT[state],
    ])
    return [204, 'text/plain', '']
  }
  return [404, 'text/plain', '']
}

const server = createServer(async (request, response) => {
  try {
    const [status, type, body] = await answer(request)
    response.writeHead(status, { 'Content-Type': type }).end(status === 204 ? undefined : body)
  } catch (error) {
    console.error(error.message)
    response.writeHead(502).end('not done: see the terminal of the backend')
  }
})
server.once('error', error => {
  fail(error.code === 'EADDRINUSE' ? `port ${PORT} is in use: set PORT to another one` : error.message)
})
server.listen(Number(PORT), 'localhost', () => {
  console.log(`page http://localhost:${server.address().port}/`)
})
