// Tables of docs/centrifugo.md: keys shared with Centrifugo, ignored and refused.

import { restricting, unsupported } from '../src/config/centrifugo.js'
import {
  channelOptions,
  NAMESPACES,
  options,
  proxyMembers,
  rateLimitMembers,
  WITHOUT_NAMESPACE,
} from '../src/config/options.js'

/** @import { Option } from '../src/config/options/make.js' */

const BEGIN = '<!-- keys: made by `node scripts/docs.js` -->'
const END = '<!-- end of keys -->'

/** Nested blocks with a row. Other keys are in the row of their first word. */
const BLOCKS = ['client.token', 'client.subscription_token', 'client.rate_limit', 'engine.redis']
const OWN_BLOCKS = ['poll', 'uni_poll']

/** @param {string} path */
const blockOf = path => BLOCKS.find(block => path.startsWith(`${block}.`)) ?? path.split('.')[0]

/** @param {Option} option */
const isHalleyOnly = ({ path, doc }) => doc.includes('Halley only') || OWN_BLOCKS.includes(path.split('.')[0])

/** @param {string} text */
const code = text => `\`${text}\``

/** @param {readonly Option[]} list @param {string} block */
const names = (list, block) =>
  list.map(({ path }) =>
    code(block !== '' && path.startsWith(`${block}.`) ? path.slice(block.length + 1) : path),
  )

/** Blocks and names of their options. @param {(option: Option) => boolean} condition @returns {[string, string[]][]} */
function byBlocks(condition) {
  const shown = options.filter(
    option =>
      condition(option) &&
      !option.block &&
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
    ['client.rate_limit.*.*', names(rateLimitMembers.filter(condition), '')],
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

/** Replaces the tables between BEGIN and END. @param {string} page docs/centrifugo.md @throws {Error} */
export function withKeys(page) {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`docs/centrifugo.md: ${BEGIN} or ${END} is missing`)
  const [before, after] = [page.slice(0, begin), page.slice(end)]
  const rows = (/** @type {Readonly<Record<string, string>>} */ keys) =>
    Object.entries(keys).map(([path, instead]) => `| ${code(path)} | ${instead} |`)
  const lines = [
    BEGIN,
    '',
    '### Same name and meaning',
    '',
    `Options of \`${NAMESPACES}[]\` are also those of \`${WITHOUT_NAMESPACE}\`; options of \`proxies[]\` are those of`,
    'every proxy block (`client.proxy.connect` and the like), those of `client.rate_limit.*.*` of every command.',
    '',
    ...table(byBlocks(option => !isHalleyOnly(option))),
    '',
    '### Ignored with a warning',
    '',
    '`.*` is every key below. For namespaces it is the same as for `channel.without_namespace`.',
    '',
    '| key | use instead |',
    '| --- | --- |',
    ...rows(unsupported),
    '',
    '### Refused',
    '',
    'The gateway does not start if one of these restrictions is set: without it, clients could do or see more.',
    '',
    '| key | use instead |',
    '| --- | --- |',
    ...rows(restricting),
    '',
    '### Only in Halley',
    '',
    ...table(byBlocks(isHalleyOnly)),
    '',
  ]
  return `${before}${lines.join('\n')}\n${after}`
}
