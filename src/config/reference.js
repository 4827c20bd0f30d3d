// All options as text: the reference in Markdown (`halley config doc` prints it, docs/config.md is its output), and the
// defaults (`halley config defaults`).

import { COMMAND } from '../base/version.js'
import { restrictingOptions, unsupportedOptions } from './centrifugo.js'
import { DEFAULTS, initialText } from './initial.js'
import {
  channelOptions,
  consumerMembers,
  NAMESPACES,
  options,
  proxyMembers,
  republishMembers,
  WITHOUT_NAMESPACE,
} from './options.js'
import { put } from './values.js'

/** @import { Change, Option } from './options/make.js' */

const HEAD = `# Configuration

<!-- Made by \`${COMMAND} config doc\`; a test holds it to the table in src/config/options.js. -->

\`${COMMAND} serve -c config.json\` (or \`.yaml\`, \`.yml\`) reads a file, \`HALLEY_...\` variables and flags. Later
sources override earlier ones: defaults, file, variables, flags. Options that Centrifugo v6 also has keep their name and
meaning.

- \`${COMMAND} config check -c FILE\` lists the errors of a file; \`${COMMAND} config defaults\` prints all
  defaults as a file (\`--yaml\` for YAML); \`${COMMAND} config doc\` prints this page.
- A key of Centrifugo v6 that Halley does not support yet causes a warning and is ignored. Any other unknown key is an
  error; the message names the nearest known key.
- Durations are text with a unit: \`25s\`, \`300ms\`, \`1h30m\`. \`0\` needs no unit.
- The variable of a key is \`HALLEY_\` and the path in upper case with \`_\`: \`client.token.hmac_secret_key\` is
  \`HALLEY_CLIENT_TOKEN_HMAC_SECRET_KEY\`. An empty variable counts as unset. Lists of strings are separated by spaces.
  Objects and lists of objects are JSON. \`HALLEY_CHANNEL_NAMESPACES_<NAME>_<OPTION>\` sets one option of an existing
  namespace, its name in upper case with \`_\` for \`-\` and \`.\`; so do \`HALLEY_PROXIES_...\`,
  \`HALLEY_RPC_NAMESPACES_...\`, \`HALLEY_CONSUMERS_...\` and \`HALLEY_REPUBLISH_...\`.

\`SIGHUP\`, \`${COMMAND} reload\` and the admin page read all sources again. A fault is logged in one line, and
nothing changes. Else the column \`change\` says what another value of a key takes:

- \`live\`: it is in force in all workers when the line \`configuration reloaded\` is logged.
- \`new workers\`: all workers are replaced, one after another.
- \`new start\`: the old value stays until the next start of the gateway; a warning names the key.

Without a file and without variables about clients, channels, proxies or the API, Halley runs a development profile:
it listens on 127.0.0.1, lets anonymous clients and all pages of this machine in (\`client.allowed_origins: [loopback]\`),
enables all transports, prints a generated API key and serves a demo page. With \`--dev\` the profile stays beside a
file and variables: what they set wins, and its namespaces join theirs. On an address that others can reach it is then
open to them; a warning says so. The text of a refused start, or a log line, says what ended the profile.

A gateway on any other address refuses to start without a token key, an API key and allowed origins, unless the options
that replace them (\`client.proxy.connect\`, \`client.allow_anonymous_connect_without_token\`, \`client.insecure\`,
\`http_api.insecure\`) are set explicitly. It also refuses secrets like \`secret\` or \`key\`; secrets below 32 bytes
cause a warning, and the placeholders of examples are refused on every address.

\`${COMMAND} config init\` writes a file to start from, with comments and random secrets. On a terminal it asks
for port, origins, transports and engine; flags answer beforehand.

\`\`\`yaml
${initialText(DEFAULTS, () => '32 random bytes')}\`\`\`
`

/** Title of each table, prefixes of its keys. @type {readonly [string, string[]][]} */
const SECTIONS = [
  [
    'Process',
    [
      'workers',
      'worker.',
      'http_server.',
      'log.',
      'engine.type',
      'engine.memory.',
      'node.',
      'overload.',
      'shutdown.',
    ],
  ],
  ['Redis', ['engine.redis.']],
  ['Clients', ['client.']],
  ['Channels', ['channel.']],
  ['Hooks', ['hooks.']],
  ['Server API', ['http_api.']],
  [
    'Transports',
    [
      'websocket.',
      'http_stream.',
      'sse.',
      'poll.',
      'emulation.',
      'uni_websocket.',
      'uni_sse.',
      'uni_http_stream.',
      'uni_poll.',
    ],
  ],
  ['Lifecycle log', ['lifecycle.']],
  ['Republishing', ['cluster_name', 'republish']],
  ['Admin page, metrics, figures', ['admin.', 'prometheus.', 'stats.', 'gc.']],
  ['Event proxies', ['proxies', 'rpc.namespace', 'rpc.without_namespace.']],
  ['Consumers', ['consumers']],
  ['Other endpoints', ['rpc.ping.', 'health.', 'demo.']],
]

const CHANNEL_HEAD = `
## Channel options

Options of each namespace in \`${NAMESPACES}\`, and of \`${WITHOUT_NAMESPACE}\` for channels without a namespace.
`

const PROXY_HEAD = `
## Proxy options

Options of each entry of \`proxies\`, and of the blocks \`client.proxy.<event>\` (\`connect\`, \`refresh\`,
\`disconnected\`, \`unsubscribed\`), \`channel.proxy.<event>\` (\`subscribe\`, \`publish\`, \`sub_refresh\`) and
\`rpc.proxy\`. [proxies.md](proxies.md) explains them.
`

const CONSUMER_HEAD = `
## Consumer options

Options of each entry of \`consumers\`. [consumers.md](consumers.md) explains them.
`

const REPUBLISH_HEAD = `
## Republish options

Options of each entry of \`republish\`. [republish.md](republish.md) explains them.
`

const UNSUPPORTED_HEAD = `
## Centrifugo options that Halley does not support yet

These keys cause a warning and are ignored (\`.*\` means all keys below).

`

const RESTRICTING_HEAD = `
These restrict what clients may do or see: where one is set, the gateway does not start.

`

/** @param {unknown} value */
const code = value => `\`${String(value).replaceAll('|', '\\|')}\``

/** @param {Option} option */
function defaultCell(option) {
  if (typeof option.default === 'object') return code(JSON.stringify(option.default))
  return option.default === '' ? 'empty' : code(option.default)
}

/** @type {Record<string, string>} */
const TYPES = {
  strings: 'list of strings',
  transforms: 'list of objects',
  members: 'list of objects',
  map: 'object',
}

/** @param {Option} option */
const typeCell = option =>
  (option.single ? 'string or ' : '') +
  (TYPES[option.type] ?? option.type) +
  (option.unit === undefined ? '' : `, ${option.unit}`)

/** @param {Option} option */
function docCell(option) {
  // A doc that names every value needs no list of them.
  const missing = option.values?.filter(value => value !== '' && !option.doc.includes(`\`${value}\``)) ?? []
  const values =
    missing.length > 0
      ? ` Values: ${(option.values ?? []).map(v => (v === '' ? 'empty' : code(v))).join(', ')}.`
      : ''
  return option.doc.replaceAll('|', '\\|') + values
}

/** @type {Record<Change, string>} */
const CHANGES = { live: 'live', workers: 'new workers', start: 'new start' }

/** @param {Option} option */
function changeCell({ change, mounts, loadedOnce }) {
  if (mounts) return `${CHANGES[change]}; from or to empty: ${CHANGES[mounts]}`
  return loadedOnce ? `${CHANGES[change]}; with uws: ${CHANGES.workers}` : CHANGES[change]
}

/** @param {readonly Option[]} rows */
function table(rows) {
  const lines = rows.map(option => {
    const cells = [typeCell, defaultCell, changeCell, docCell].map(cell => cell(option))
    return `| ${[code(option.path), ...cells].join(' | ')} |`
  })
  return [
    '',
    '| key | type | default | change | meaning |',
    '| --- | --- | --- | --- | --- |',
    ...lines,
    '',
  ].join('\n')
}

/** @returns {string} Markdown */
export function configReference() {
  let text = HEAD
  for (const [title, prefixes] of SECTIONS) {
    const rows = options.filter(
      ({ path, block }) =>
        block === undefined &&
        !path.startsWith(`${WITHOUT_NAMESPACE}.`) &&
        prefixes.some(prefix => path.startsWith(prefix)),
    )
    text += `\n## ${title}\n${table(rows)}`
  }
  text += CHANNEL_HEAD + table(channelOptions)
  text += PROXY_HEAD + table(proxyMembers)
  text += CONSUMER_HEAD + table(consumerMembers)
  text += REPUBLISH_HEAD + table(republishMembers)
  const list = (/** @type {string[]} */ paths) => `${paths.map(path => `- ${code(path)}`).join('\n')}\n`
  text += UNSUPPORTED_HEAD + list(unsupportedOptions) + RESTRICTING_HEAD + list(restrictingOptions)
  return text
}

/** @returns {Record<string, any>} every option with its default, in the form of a file */
export function defaultTree() {
  /** @type {Record<string, any>} */
  const tree = {}
  for (const option of options) put(tree, option.path, option.default)
  return tree
}
