// Connection strings of PostgreSQL.

import t from 'tap'
import { parseDsn } from '../../src/config/postgres-dsn.js'

t.test('a URL and key-value pairs are equivalent', async t => {
  const whole = {
    client: {
      host: 'db',
      port: 5433,
      user: 'app',
      password: "a b'c",
      database: 'shop',
      application_name: 'halley',
    },
    sslmode: 'require',
    poolMax: 7,
    settings: { search_path: 'x' },
  }
  const url = "postgres://app:a%20b'c@db:5433/shop?sslmode=require&pool_max_conns=7&search_path=x"
  t.match(parseDsn(url), whole)
  const pairs = String.raw`host=db port=5433 user=app password='a b\'c' dbname=shop sslmode=require pool_max_conns=7 search_path=x`
  t.match(parseDsn(pairs), whole)
})

t.test('the host may be missing, IPv6 or a socket', async t => {
  t.equal(parseDsn('postgres:///shop').client.host, undefined)
  t.equal(parseDsn('postgresql://app@/shop?host=/run/postgresql').client.host, '/run/postgresql')
  t.equal(parseDsn('postgresql://app@/shop?host=/run/postgresql').sslmode, 'disable')
  t.equal(parseDsn('postgres://[::1]:1/shop').client.host, '::1')
  t.equal(parseDsn('host=db').sslmode, 'prefer')
  t.match(parseDsn('postgres://a,b:p,w@db/x,y').client, {
    host: 'db',
    user: 'a,b',
    password: 'p,w',
    database: 'x,y',
  })
})

t.test('errors show no password', async t => {
  for (const [dsn, fault] of [
    ['', 'is empty'],
    ['nonsense', 'is neither a postgres:// URL nor pairs'],
    ['postgres://a:hush@one,two/db', 'has several hosts'],
    ['host=one,two password=hush', 'has several hosts'],
    ['postgres://a:hush@db/x?sslmode=maybe', 'has an unknown sslmode'],
    ['postgres://a:hush@db/x?pool_max_conns=x', 'has a pool_max_conns that is not between 0 and 10000'],
    ['postgres://a:hush@db:port/x', 'is not a valid postgres:// URL'],
    ['postgres://a:hush%zz@db/x', 'has an invalid % escape'],
  ]) {
    const error = t.throws(() => parseDsn(dsn), undefined, dsn)
    t.match(/** @type {any} */ (error).message, fault, dsn)
    t.notMatch(/** @type {any} */ (error).message, 'hush')
  }
})
