import { chmodSync } from 'node:fs'
import t from 'tap'
import { changesBetween, withChanges } from '../../src/config/changes.js'
import { loadConfig } from '../../src/config/load.js'
import { tlsOf, withTlsOf } from '../../src/config/pem.js'
import { urlOf } from '../../src/processes/primary/address.js'
import { CERT, EXPIRED, KEY, OTHER_KEY, WEAK, WEAK_KEY } from './certificates.js'
import { directory, faultsOf } from './support.js'

const serve = (tls, more = {}) => ({ http_server: { tls: { enabled: true, ...tls }, ...more } })
const pair = { cert_pem: CERT, key_pem: KEY }

t.test('PEM may be text, base64 of text, or a path; workers get the text', async t => {
  const files = directory(t)
  const base64 = Buffer.from(CERT).toString('base64')
  for (const [cert_pem, key_pem] of [
    [CERT, KEY],
    [base64, Buffer.from(KEY).toString('base64')],
    [files.write('cert.pem', CERT), files.write('key.pem', KEY)],
  ]) {
    const { config, warnings } = loadConfig({ base: serve({ cert_pem, key_pem, client_ca_pem: cert_pem }) })
    t.match(config.http_server.tls, { enabled: true, ...pair, client_ca_pem: CERT })
    t.same(warnings, [])
  }
  const { config } = loadConfig({ env: { HALLEY_HTTP_SERVER_TLS_CERT_PEM: base64 } })
  t.equal(config.http_server.tls.cert_pem, base64, 'without TLS nothing is read')
})

t.test('an unusable pair is a one-line error per key', async t => {
  const files = directory(t)
  const unreadable = files.write('unreadable.pem', CERT)
  chmodSync(unreadable, 0)
  const at = key => `http_server.tls.${key}: `
  for (const [tls, ...faults] of [
    [
      {},
      `${at('cert_pem')}is empty; http_server.tls needs it`,
      `${at('key_pem')}is empty; http_server.tls needs it`,
    ],
    [{ cert_pem: CERT }, `${at('key_pem')}is empty; http_server.tls needs it`],
    [{ ...pair, key_pem: OTHER_KEY }, `${at('key_pem')}is not the key of cert_pem`],
    [{ ...pair, cert_pem: KEY }, `${at('cert_pem')}is not a certificate`],
    [{ ...pair, key_pem: CERT }, `${at('key_pem')}is not a private key`],
    [
      { ...pair, key_pem: '/no/such/file' },
      `${at('key_pem')}is neither PEM, base64 of PEM, nor the path of a file`,
    ],
    [{ ...pair, cert_pem: files.path }, `${at('cert_pem')}is a directory`],
    [{ ...pair, cert_pem: files.write('text', 'none') }, `${at('cert_pem')}is a file that contains no PEM`],
    [{ ...pair, client_ca_pem: KEY }, `${at('client_ca_pem')}is not a certificate`],
  ])
    t.same(faultsOf(serve(tls)), faults)
  if (process.getuid?.() !== 0)
    t.same(faultsOf(serve({ ...pair, cert_pem: unreadable })), [
      `${at('cert_pem')}is a file without read permission`,
    ])
  t.match(faultsOf(serve({ cert_pem: WEAK, key_pem: WEAK_KEY })), [
    /^http_server\.tls\.cert_pem: cannot be used: .+key too small$/,
  ])
  const clients = serve({ ...pair, client_ca_pem: CERT }, { driver: 'uws' })
  t.match(faultsOf(clients), [/^http_server\.tls\.client_ca_pem: needs http_server\.driver auto or node: /])
})

t.test('an expired certificate is a warning', async t => {
  const { warnings } = loadConfig({ base: serve({ ...pair, cert_pem: EXPIRED }) })
  t.same(warnings, ['http_server.tls.cert_pem: the certificate expired on Feb  1 00:00:00 2020 GMT'])
})

t.test('the internal port uses the certificate of the other port, or its own', async t => {
  const load = http_server => loadConfig({ base: { http_server } })
  const off = load({ internal_port: 9000 })
  t.same(tlsOf(off.config.http_server), { clients: null, internal: null })
  const both = load({ internal_port: 9000, tls: { enabled: true, ...pair } }).config.http_server
  t.same(tlsOf(both), { clients: both.tls, internal: both.tls })
  const own = load({ internal_port: 9000, internal_tls: { enabled: true, ...pair } }).config.http_server
  t.same(tlsOf(own), { clients: null, internal: own.internal_tls })
  t.same(load({ internal_tls: { enabled: true, ...pair } }).warnings, [
    'http_server.internal_tls.enabled: has no effect: http_server.internal_port is 0',
  ])
  t.equal(urlOf(both), 'https://0.0.0.0:8000')
  t.equal(urlOf(own), 'http://0.0.0.0:8000')
})

t.test('Centrifugo keys without use for a server are a warning', async t => {
  const { warnings } = loadConfig({
    base: serve({ ...pair, server_name: 'a', server_ca_pem: CERT, insecure_skip_verify: true }),
  })
  t.equal(warnings.length, 3)
})

t.test('a reload detects changed contents; uws needs new workers', async t => {
  const load = tls => loadConfig({ base: serve(tls) }).config
  const now = load(pair)
  const renewed = load({ ...pair, cert_pem: EXPIRED })
  t.same(changesBetween(now, renewed, 'node').live, ['http_server.tls.cert_pem'])
  t.same(changesBetween(now, renewed, 'uws'), { live: [], workers: ['http_server.tls.cert_pem'], start: [] })
  const clients = load({ ...pair, client_ca_pem: CERT })
  for (const [from, to] of [
    [now, clients],
    [clients, now],
  ])
    t.same(
      changesBetween(from, to, 'node'),
      { live: [], workers: [], start: ['http_server.tls.client_ca_pem'] },
      'it may switch the socket server, and two of them cannot share a port',
    )
})

t.test('enabling or disabling TLS requires a restart', async t => {
  const on = loadConfig({ base: serve(pair) }).config
  const off = loadConfig({ base: {} }).config
  for (const [now, next] of [
    [on, off],
    [off, on],
  ]) {
    const given = withTlsOf(next, now)
    t.same(changesBetween(now, given), { live: [], workers: [], start: ['http_server.tls.enabled'] })
    t.same(withChanges(now, given, ['live', 'workers']).http_server.tls, now.http_server.tls)
  }
})
