import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { faultsOf } from './support.js'

const endpoint = 'http://127.0.0.1:3000/centrifugo/event'
const proxy = { name: 'chat', endpoint }

t.test('a Centrifugo configuration with event proxies is accepted', async t => {
  const { config, warnings } = loadConfig({
    base: {
      client: {
        concurrency: 8,
        proxy: {
          connect: {
            enabled: true,
            endpoint,
            timeout: '500ms',
            http_headers: ['Cookie', 'X-Real-Ip'],
            emulated_headers: ['Authorization'],
            http: {
              static_headers: { 'X-Api-Key': 'k' },
              status_to_code_transforms: [
                { status_code: 403, to_disconnect: { code: 4403, reason: 'forbidden' } },
                { status_code: 404, to_error: { code: 1404, message: 'unknown', temporary: true } },
              ],
            },
          },
          refresh: { enabled: true, endpoint, include_connection_meta: true },
        },
      },
      channel: {
        proxy: { subscribe: { endpoint }, publish: { endpoint, binary_encoding: true } },
        without_namespace: { subscribe_proxy_enabled: true, publish_proxy_enabled: true },
        namespaces: [{ name: 'chat', sub_refresh_proxy_enabled: true, sub_refresh_proxy_name: 'chat' }],
      },
      rpc: {
        proxy: { endpoint },
        without_namespace: { proxy_enabled: true, proxy_name: '' },
        namespaces: [{ name: 'users', proxy_enabled: true, proxy_name: 'chat' }],
        namespace_boundary: '.',
      },
      proxies: [proxy],
    },
  })
  t.strictSame(warnings, [])
  t.match(config.client.proxy.connect, {
    timeout: 500,
    http: { status_to_code_transforms: [{ to_error: { code: 0 } }, { to_error: { temporary: true } }] },
  })
  t.match(config.proxies, [{ name: 'chat', timeout: 1000, retries: 0, breaker: { failures: 10 } }])
  t.match(config.rpc.namespaces, [{ name: 'users', proxy_enabled: true, proxy_name: 'chat' }])
})

t.test('proxies can be configured by variables', async t => {
  const { config } = loadConfig({
    env: {
      HALLEY_CLIENT_PROXY_CONNECT_HTTP_STATIC_HEADERS: '{"X-Key": "a b"}',
      HALLEY_CLIENT_PROXY_CONNECT_HTTP_HEADERS: 'cookie x-id',
      HALLEY_CLIENT_PROXY_CONNECT_HTTP_STATUS_TO_CODE_TRANSFORMS:
        '[{"status_code": 404, "to_error": {"code": 1404}}]',
      HALLEY_PROXIES: JSON.stringify([{ ...proxy, name: 'a-b' }]),
      HALLEY_PROXIES_A_B_TIMEOUT: '2s',
      HALLEY_RPC_NAMESPACES: '[{"name": "users"}]',
      HALLEY_RPC_NAMESPACES_USERS_PROXY_NAME: 'a-b',
      HALLEY_RPC_NAMESPACE_BOUNDARY: '/',
    },
  })
  t.match(config.client.proxy.connect, {
    http_headers: ['cookie', 'x-id'],
    http: { static_headers: { 'X-Key': 'a b' }, status_to_code_transforms: [{ status_code: 404 }] },
  })
  t.match(config.proxies, [{ name: 'a-b', timeout: 2000, endpoint }])
  t.match(config.rpc, { namespace_boundary: '/', namespaces: [{ name: 'users', proxy_name: 'a-b' }] })
  t.match(faultsOf({}, { HALLEY_PROXIES_X_TIMEOUT: '1s' })[0], 'no proxy matches this variable')
  t.match(faultsOf({}, { HALLEY_PROXIES: '{' })[0], 'HALLEY_PROXIES: is not a JSON array of proxies')
  t.match(
    faultsOf({}, { HALLEY_RPC_PROXY_HTTP_STATIC_HEADERS: 'x' })[0],
    'HALLEY_RPC_PROXY_HTTP_STATIC_HEADERS: is not a JSON object',
  )
})

/** @param {object} options */
const connect = options => ({ client: { proxy: { connect: { enabled: true, endpoint, ...options } } } })
/** @param {object} transform */
const transform = transform => connect({ http: { status_to_code_transforms: [transform] } })

t.test('invalid proxies are refused', async t => {
  for (const [tree, line] of /** @type {[Record<string, unknown>, string][]} */ ([
    [
      connect({ endpoint: '' }),
      'proxy.connect.endpoint: is empty, but client.proxy.connect.enabled needs it',
    ],
    [
      { channel: { namespaces: [{ name: 'chat', publish_proxy_enabled: true }] } },
      'channel.proxy.publish.endpoint: is empty, but channel.namespaces[0].publish_proxy_enabled needs it',
    ],
    [{ rpc: { without_namespace: { proxy_enabled: true } } }, 'rpc.proxy.endpoint: is empty'],
    [{ proxies: [{ name: 'chat' }] }, 'proxies[0].endpoint: is empty'],
    [{ proxies: [proxy, proxy] }, 'proxies[1].name: "chat" is also the name of another proxy'],
    [{ proxies: [{ ...proxy, name: 'a b' }] }, 'proxies[0].name: "a b" must be two or more'],
    [{ proxies: [{ ...proxy, name: 'default' }] }, 'proxies[0].name: "default" is a reserved name'],
    [{ channel: { without_namespace: { subscribe_proxy_name: 'nobody' } } }, 'unknown proxy "nobody"'],
    [{ rpc: { namespaces: [{ name: 'ab', proxy_name: 'xy' }] } }, 'proxy_name: unknown proxy'],
    [connect({ endpoint: 'http://' }), 'client.proxy.connect.endpoint: is not a URL'],
    [connect({ endpoint: 'http://u:p@host/' }), 'has a user or password'],
    [connect({ endpoint: 'host:1000/path' }), 'is neither an http:// or https:// URL nor a gRPC target'],
    [connect({ endpoint: 'unix-abstract:x' }), 'is neither an http:// or https:// URL nor a gRPC target'],
    [
      connect({ endpoint: 'host:1000', grpc: { static_metadata: { 'grpc-timeout': '1' } } }),
      'client.proxy.connect.grpc.static_metadata: "grpc-timeout" is not a name of metadata',
    ],
    [
      connect({ endpoint: 'host:1000', grpc: { credentials_key: 'k', credentials_value: 'ä' } }),
      'client.proxy.connect.grpc.credentials_key: the value of "k" is not plain ASCII',
    ],
    [
      connect({ endpoint: 'host:1000', grpc: { tls: { enabled: true, server_ca_pem: 'x' } } }),
      'client.proxy.connect.grpc.tls.server_ca_pem: is neither PEM',
    ],
    [connect({ timeout: 1000 }), 'client.proxy.connect.timeout: 1000 has no unit'],
    [connect({ timeout: '-1s' }), 'is negative'],
    [connect({ http_headers: ['a b'] }), 'http_headers: "a b" is not the name of a header'],
    [connect({ http: { static_headers: { a: 'x\r\ny: z' } } }), 'the value of "a" is not plain ASCII'],
    [connect({ endpoint: 'host:1000', grpc: { static_metadata: { a: '\t' } } }), 'of "a" is not plain ASCII'],
    [
      connect({ http: { tls: { enabled: true, server_ca_pem: 'x' } } }),
      'http.tls.server_ca_pem: is neither PEM',
    ],
    [transform({ to_error: { code: 1000 } }), '[0]: status_code is missing'],
    [transform({ status_code: 404 }), '[0] needs either'],
    [
      transform({ status_code: 404, to_error: { code: 1 }, to_disconnect: { code: 3000 } }),
      '[0] needs either',
    ],
    [
      transform({ status_code: 404, to_disconnect: { code: 3000, reason: 'ä' } }),
      'to_disconnect.reason that is',
    ],
    [transform({ status_code: 404, to_disconnect: { code: 999 } }), 'outside 3000 to 4999'],
    [
      transform({ status_code: 404, to_error: { code: 1, message: 'x'.repeat(124) } }),
      'to_error.message that is',
    ],
    [{ rpc: { proxy: { retries: 1 } } }, 'rpc.proxy.retries: must be 0'],
    [{ channel: { proxy: { subscribe: { static_http_headers: {} } } } }, 'static_http_headers: unknown key'],
  ])) {
    const faults = faultsOf(tree)
    t.equal(faults.length, 1, JSON.stringify(tree))
    t.ok(faults[0].includes(line), `${faults[0]} has ${line}`)
  }
})

t.test('headers that are never sent cause a warning', async t => {
  const { warnings } = loadConfig({
    base: connect({
      http_headers: ['Upgrade'],
      http: { static_headers: { Host: 'x' } },
      grpc: { static_metadata: { TE: 'x' } },
    }),
  })
  t.strictSame(warnings, [
    'client.proxy.connect.http_headers: "Upgrade" is never forwarded',
    'client.proxy.connect.http.static_headers: "Host" is never sent',
    'client.proxy.connect.grpc.static_metadata: "TE" is never sent',
  ])
})

t.test('unused blocks need no endpoint; schemes ignore case', async t => {
  t.strictSame(faultsOf({ channel: { proxy: { publish: { timeout: '2s' } } } }), [])
  t.strictSame(faultsOf(connect({ endpoint: 'HTTPS://host/path?x=1' })), [])
  t.strictSame(faultsOf(connect({ http: { static_headers: { a: 'x\ty' } } })), [])
  for (const target of ['grpc://host:1', 'GRPC://[::1]:1', 'host:1', 'dns:///host:1', 'unix:/run/backend'])
    t.strictSame(faultsOf(connect({ endpoint: target })), [], target)
})
