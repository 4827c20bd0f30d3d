import { SCRIPTS } from './scripts.js'

/** What is sent as it is, with a key or a topic behind it where there is one. A test holds this list to the sources. */
const KEYED = ['append', 'del', 'getrange', 'set']
const PLAIN = ['ping', 'script|load']
const TOPICS = ['publish', 'subscribe', 'unsubscribe']
const CLUSTER = ['cluster|info', 'cluster|slots', 'command|info']
const SHARDED_TOPICS = ['spublish', 'ssubscribe', 'sunsubscribe']

/**
 * Asks, as far as the server's version can tell (7.0), which of the commands in ARGV the user may not run. ARGV[1] is what
 * keyed commands and topics are asked for with; more of it than any of them needs, since Redis 7.0 looks for keys behind
 * the end of what is too short, and may die of it.
 */
const QUESTION = `
local refused = {}
local key = ARGV[1]
for i = 2, #ARGV do
  local name, sub = string.match(ARGV[i], '^([^|]+)|?(.*)$')
  local second = sub
  if sub == '' then second = key end
  local known, may = pcall(redis.acl_check_cmd or tostring, name, second, key, key, key, key, key, key)
  if known and not may then refused[#refused + 1] = ARGV[i] end
end
return refused
`

/** @returns {string[]} what the scripts call */
function scripted() {
  const calls = SCRIPTS.flatMap(({ text }) => [...text.matchAll(/redis\.p?call\(\s*['"](\w+)['"]/g)])
  return calls.map(([, name]) => name.toLowerCase())
}

/**
 * @param {boolean} cluster
 * @param {boolean} sharded whether topics are those of sharded pub/sub
 * @returns {string[]} every command that the engine needs, but EVALSHA, with which that is asked
 */
export function neededCommands(cluster, sharded) {
  const names = [...KEYED, ...PLAIN, ...scripted(), ...(sharded ? SHARDED_TOPICS : TOPICS)]
  if (cluster) names.push(...CLUSTER, sharded ? 'pubsub|shardchannels' : 'pubsub|channels')
  return [...new Set(names)].sort()
}

/**
 * @param {import('./conversation.js').Conversation} conversation with a server that takes commands
 * @param {{name: string, cluster: boolean, sharded: boolean}} place `name`: a key and topic as the engine would use
 * @returns {Promise<string[]>} needed commands that the user may not run, or not with such keys and topics
 * @throws {Error} of the conversation
 */
export async function refusedCommands(conversation, { name, cluster, sharded }) {
  const hash = await conversation.ask('SCRIPT', 'LOAD', QUESTION)
  return conversation.ask('EVALSHA', hash, 0, name, ...neededCommands(cluster, sharded))
}
