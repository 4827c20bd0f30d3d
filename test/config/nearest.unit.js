import t from 'tap'
import { rootKeys } from '../../src/config/keys.js'
import { didYouMean, nearest } from '../../src/config/nearest.js'

t.test('the nearest known key is found', async t => {
  for (const [typed, meant] of [
    ['http_server.prot', 'http_server.port'],
    ['cleint', 'client'],
    ['port', 'http_server.port'],
    ['namespaces', 'channel.namespaces'],
    ['allowed_origins', 'client.allowed_origins'],
    ['client.allowedOrigins', 'client.allowed_origins'],
    ['token_hmac_secret_key', 'client.token.hmac_secret_key'],
    ['api_key', 'http_api.key'],
    ['sse.enable', 'sse.enabled'],
    ['channel.without_namespace.histroy_size', 'channel.without_namespace.history_size'],
    ['Workers', 'workers'],
  ]) {
    t.equal(rootKeys.nearest(typed), meant, typed)
  }
})

t.test('a name that is too different gets no suggestion', async t => {
  for (const [typed, known] of [
    ['nope', ['ladder', 'stop', 'set']],
    ['nonsense', ['serve', 'config', 'fleet', 'dashboard']],
    ['x', ['y']],
    ['verbosity', ['version', 'workers', 'port']],
    ['x'.repeat(100_000), ['y']],
    ['d77', ['d1', 'd2']],
    ['', ['a']],
    ['x', []],
  ])
    t.equal(nearest(String(typed), known), '', String(typed).slice(0, 20))
  for (const typed of ['nonsense', 'foo', 'http_server.nonsense', 'quux.port_of_call'])
    t.equal(rootKeys.nearest(typed), '', typed)
})

t.test('an error about an unknown name ends with a suggestion', async t => {
  t.equal(didYouMean('srve', ['fleet', 'serve']), '; did you mean serve?')
  t.equal(didYouMean('prot', ['port'], '--'), '; did you mean --port?')
  t.equal(didYouMean('nonsense', ['serve']), '')
})
