import { CONFIG_FLAG } from './command.js'
import { makeToken, TOKEN_FLAGS, TOKEN_FLAGS_HELP } from './jwt.js'

/** @type {import('./command.js').Command} */
export const token = {
  name: 'token',
  summary: 'make a connection token',
  help: `Usage: halley token [flags]

Prints a connection token (JWT, HS256) signed with client.token.hmac_secret_key.

${TOKEN_FLAGS_HELP}
      --channel CHANNEL  subscribe the connection to it; may be given more than once
  -h, --help             this text
  -V, --version          the version

Examples:
  halley token -c config.json -u 42
  halley token -c config.json -u 42 --ttl 1h --info '{"name":"Ann"}' --channel news
`,
  flags: { config: CONFIG_FLAG, ...TOKEN_FLAGS, channel: { type: 'string', multiple: true } },

  run(io, flags) {
    io.stdout(`${makeToken(io, flags, 'token', { channels: flags.channel })}\n`)
    return 0
  },
}
