import { UsageError } from './args.js'
import { CONFIG_FLAG } from './command.js'
import { makeToken, TOKEN_FLAGS, TOKEN_FLAGS_HELP } from './jwt.js'

/** @type {import('./command.js').Command} */
export const subtoken = {
  name: 'subtoken',
  summary: 'make a subscription token',
  help: `Usage: halley subtoken --channel CHANNEL [flags]

Prints a subscription token (JWT, HS256) for one user and one channel, signed with
client.subscription_token.hmac_secret_key if that block is enabled, else with client.token.hmac_secret_key.

      --channel CHANNEL  the channel, with its $ if it has one
${TOKEN_FLAGS_HELP}
  -h, --help             this text
  -V, --version          the version

Examples:
  halley subtoken -c config.json -u 42 --channel '$news'
  halley subtoken -c config.json -u 42 --channel chat:room --ttl 10m
`,
  flags: { config: CONFIG_FLAG, ...TOKEN_FLAGS, channel: { type: 'string' } },

  run(io, flags) {
    if (!flags.channel) throw new UsageError('--channel is needed')
    io.stdout(`${makeToken(io, flags, 'subscription_token', { channel: flags.channel })}\n`)
    return 0
  },
}
