import t from 'tap'
import { rootKeys } from '../../src/config/keys.js'
import { nearest } from '../../src/config/nearest.js'

t.test('the nearest known key is the one that was meant', async t => {
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

t.test('a name of any length gets an answer, nothing known gets none', async t => {
  t.equal(nearest('x'.repeat(100_000), ['y']), 'y')
  t.equal(nearest('x', []), '')
})
