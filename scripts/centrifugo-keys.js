// The tables of docs/centrifugo.md: keys that Halley shares with Centrifugo, and keys that it ignores or refuses.

import { restrictingOptions, unsupportedOptions } from '../src/config/centrifugo.js'
import {
  channelOptions,
  NAMESPACES,
  options,
  proxyMembers,
  WITHOUT_NAMESPACE,
} from '../src/config/options.js'

/** @import { Option } from '../src/config/options/make.js' */

const BEGIN = '<!-- keys: made by `node scripts/docs.js` -->'
const END = '<!-- end of keys -->'

/** Nested blocks with a row of their own. All other keys are in the row of their first word. */
const BLOCKS = ['client.token', 'client.subscription_token', 'engine.redis']
/** Blocks of transports that Centrifugo does not have. */
const OWN_BLOCKS = ['poll', 'uni_poll']

/**
 * Prefix of ignored keys -> what to use instead. The first prefix that fits counts.
 * @type {readonly [string, string][]}
 */
const INSTEAD = [
  ['admin.insecure', 'set `admin.password`'],
  ['admin.web_', "Halley's own admin page"],
  ['admin.external', '`http_server.internal_port` separates clients from the rest'],
  ['http_api.external', '`http_server.internal_port` separates clients from the rest'],
  ['http_server.tls_external', '`http_server.internal_port` separates clients from the rest'],
  ['client.rate_limit', '`client.connection_rate_limit`, and hooks'],
  ['channel.without_namespace.require_server_tags_filter', 'a channel for each group of readers'],
  ['user_block', 'a `connect` hook or proxy that refuses, and `disconnect` of the API'],
  ['token_revoke', 'short-lived tokens, and `disconnect` of the API'],
  ['user_tokens_invalidate', 'short-lived tokens, and `disconnect` of the API'],
  ['http_server.tls_autocert', 'an ACME client, or a reverse proxy with one'],
  ['http_server.', 'a reverse proxy: [operations.md](operations.md)'],
  ['broker.', '`engine.type`: memory or redis'],
  ['presence_manager.', '`engine.type`: memory or redis'],
  ['map_broker.', 'no map channels'],
  ['channel.proxy.map_', 'no map channels'],
  ['channel.proxy.shared_poll_', 'no shared-poll channels'],
  ['channel.proxy.subscribe_stream', '`subscribe` proxy or hook, and the server API'],
  ['channel.without_namespace.map', 'no map channels'],
  ['channel.without_namespace.shared_poll', 'no shared-poll channels'],
  ['channel.without_namespace.subscribe_stream', '`subscribe` proxy or hook, and the server API'],
  ['channel.without_namespace.client_publish_debounce', 'a `publish` hook'],
  ['client.channel_position_max_time_lag', '`client.channel_position_check_delay`'],
  ['debug.', '`node --cpu-prof`, `npx halley-gateway dashboard`'],
  ['grpc_api.', 'the [server API](api.md) over HTTP'],
  ['graphite.', '`prometheus.enabled`, or the [CSV file](csv.md)'],
  ['opentelemetry.', '`prometheus.enabled`'],
  ['prometheus.', 'see [metrics.md](metrics.md)'],
  ['pid_file', 'the service manager knows the process id'],
  ['swagger.', '[openapi.yaml](openapi.yaml)'],
  ['shared_poll.', 'no shared-poll channels'],
  ['uni_grpc.', 'one-way SSE or HTTP streaming'],
  ['uni_websocket.compression', '`websocket.compression` for two-way clients'],
  ['webtransport.', 'WebSocket'],
  ['websocket.', 'set by the socket server'],
  ['uni_websocket.', 'set by the socket server'],
  ['usage_stats.', 'nothing is sent anywhere'],
  ['engine.redis.replica_client', 'reads go to the master'],
  ['engine.redis.force_resp2', 'set by the driver'],
  ['engine.redis.sentinel_client_name', '`engine.redis.client_name`'],
  ['engine.redis.sentinel_tls', '`engine.redis.sentinel_tls.server_ca_pem`'],
  ['engine.redis.tls', '`engine.redis.tls.server_ca_pem`'],
  ['engine.redis.', 'histories are streams of Redis, presence has one layout'],
  ['init.', 'clients connect at once'],
  ['dev.', '`npm start` without a configuration is the development profile'],
]

/** @param {string} path @returns {string} */
const blockOf = path => BLOCKS.find(block => path.startsWith(`${block}.`)) ?? path.split('.')[0]

/** Options that Centrifugo does not have. @param {Option} option */
const isHalleyOnly = ({ path, doc }) => doc.includes('Halley only') || OWN_BLOCKS.includes(path.split('.')[0])

/** @param {string} text */
const code = text => `\`${text}\``

/** @param {readonly Option[]} list @param {string} block */
const names = (list, block) =>
  list.map(({ path }) =>
    code(block !== '' && path.startsWith(`${block}.`) ? path.slice(block.length + 1) : path),
  )

/** @param {(option: Option) => boolean} condition @returns {[string, string[]][]} block and names of its options */
function byBlocks(condition) {
  const shown = options.filter(
    option =>
      condition(option) &&
      option.block === undefined &&
      option.members === undefined &&
      !option.path.startsWith(`${WITHOUT_NAMESPACE}.`),
  )
  const blocks = [...new Set(shown.map(({ path }) => blockOf(path)))]
  return [
    ...blocks.map(block => {
      const members = shown.filter(({ path }) => blockOf(path) === block)
      return /** @type {[string, string[]]} */ ([block, names(members, block)])
    }),
    [`${NAMESPACES}[]`, names(channelOptions.filter(condition), '')],
    ['proxies[]', names(proxyMembers.filter(condition), '')],
  ]
}

/** @param {[string, string[]][]} blocks */
const table = blocks => [
  '| block | keys |',
  '| --- | --- |',
  ...blocks
    .filter(([, keys]) => keys.length > 0)
    .map(([block, keys]) => `| ${code(block)} | ${keys.join(', ')} |`),
]

/**
 * @param {string} page docs/centrifugo.md
 * @returns {string} the page with up-to-date tables between BEGIN and END
 * @throws {Error} the page has no BEGIN or no END
 */
export function withKeys(page) {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`docs/centrifugo.md: ${BEGIN} or ${END} is missing`)
  const [before, after] = [page.slice(0, begin), page.slice(end)]
  const rows = (/** @type {string[]} */ paths) =>
    paths.map(path => {
      const instead = INSTEAD.find(([prefix]) => path.startsWith(prefix))?.[1] ?? '-'
      return `| ${code(path)} | ${instead} |`
    })
  const lines = [
    BEGIN,
    '',
    '### The same name and meaning',
    '',
    `Options of \`${NAMESPACES}[]\` are also those of \`${WITHOUT_NAMESPACE}\`; options of \`proxies[]\` are those of`,
    'every proxy block (`client.proxy.connect` and the like).',
    '',
    ...table(byBlocks(option => !isHalleyOnly(option))),
    '',
    '### Ignored with a warning',
    '',
    '`.*` is every key below. For namespaces it is the same as for `channel.without_namespace`.',
    '',
    '| key | use instead |',
    '| --- | --- |',
    ...rows(unsupportedOptions),
    '',
    '### Refused: they restrict',
    '',
    'Where one of these is set, the gateway does not start: clients could do or see more than the file says.',
    '',
    '| key | use instead |',
    '| --- | --- |',
    ...rows(restrictingOptions),
    '',
    '### Only in Halley',
    '',
    ...table(byBlocks(isHalleyOnly)),
    '',
  ]
  return `${before}${lines.join('\n')}\n${after}`
}
