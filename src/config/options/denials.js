// Options of blocked users and revoked tokens: `user_block`, `token_revoke`, `user_tokens_invalidate`.

import { bool, int, newStart, oneOrMore, string, withFields } from './make.js'
import { redisConnection } from './redis.js'

/** @param {string} what @param {string} method */
const denial = (what, method) => ({
  storage_type: string(
    `Where ${what} are kept: \`memory\` (by the engine: in the primary and a journal beside \`engine.memory.snapshot_file\`, or in Redis with the engine \`redis\`) or \`redis\` (in the Redis of the block \`redis\`, which has the options of \`engine.redis\` up to \`prefix\`, with the same defaults, and \`reuse_from_engine\`).`,
    {
      default: 'memory',
      values: ['memory', 'redis'],
      unsupported: { database: 'use memory or redis' },
    },
  ),
  max_entries: int(200_000, `Maximum entries; more make \`${method}\` fail with error 106. Halley only.`, {
    min: 1,
    max: 1_000_000,
  }),
  redis: withFields(
    {
      reuse_from_engine: bool('Use the servers and the prefix of `engine.redis`, on a separate connection.'),
      address: oneOrMore('Address, exactly one.', { default: 'redis://127.0.0.1:6379', secret: true }),
      ...redisConnection,
      prefix: string('Prefix of all keys.', { default: 'halley' }),
    },
    { block: true },
  ),
})

export const denialOptions = newStart({
  user_block: denial('blocked users', 'block_user'),
  token_revoke: denial('revoked tokens', 'revoke_token'),
  user_tokens_invalidate: denial('invalidations of the tokens of users', 'invalidate_user_tokens'),
})
