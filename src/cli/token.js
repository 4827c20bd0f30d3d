import { createHmac } from 'node:crypto'
import { COMMAND } from '../base/version.js'
import { ConfigError, loadConfig } from '../config/load.js'
import { envName } from '../config/options.js'
import { parseDuration } from '../config/values.js'
import { UsageError } from './args.js'
import { CONFIG_FLAG } from './command.js'

/** @import { Flag } from './args.js' */
/** @import { Command, Io } from './command.js' */

/** @param {unknown} value */
const segment = value => Buffer.from(JSON.stringify(value)).toString('base64url')

/** An HS256 JWT. @param {Record<string, unknown>} claims @param {string} secret */
function sign(claims, secret) {
  const body = `${segment({ alg: 'HS256', typ: 'JWT' })}.${segment(claims)}`
  return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`
}

/** In seconds. @param {string} text duration, or whole seconds */
function parseTtl(text) {
  if (/^\d{1,12}$/.test(text)) return Number(text)
  try {
    return Math.ceil(parseDuration(text) / 1000)
  } catch (error) {
    throw new UsageError(`--ttl: ${error.message}`)
  }
}

/** @param {string | undefined} text */
function parseInfo(text) {
  if (text === undefined) return undefined
  try {
    const info = JSON.parse(text)
    if (info !== null && typeof info === 'object' && !Array.isArray(info)) return info
  } catch {
    // Reported below.
  }
  throw new UsageError('--info must be a JSON object')
}

/**
 * @param {Io} io @param {Record<string, any>} flags @param {'token' | 'subscription_token'} kind
 * @param {Record<string, unknown>} kindClaims claims of this kind only
 */
function makeToken({ env, cwd }, flags, kind, kindClaims) {
  const { config } = loadConfig({ file: flags.config, env, cwd })
  // By default, subscription tokens use the keys of connection tokens.
  const block = kind === 'subscription_token' && config.client.subscription_token.enabled ? kind : 'token'
  const settings = config.client[block]
  const key = `client.${block}.hmac_secret_key`
  if (settings.jwks_public_endpoint !== '') {
    throw new ConfigError([
      `client.${block}.jwks_public_endpoint: only tokens signed with a key of this JWKS are valid`,
    ])
  }
  if (settings.hmac_secret_key === '') {
    throw new ConfigError([
      `${key}: not set; pass a configuration that sets it with -c, or set ${envName(key)}`,
    ])
  }
  const now = Math.floor(Date.now() / 1000)
  const ttl = parseTtl(flags.ttl ?? '24h')
  const user = flags.user ?? ''
  return sign(
    {
      [settings.user_id_claim || 'sub']: user === '' ? undefined : user,
      iat: now,
      exp: ttl === 0 ? undefined : now + ttl,
      aud: flags.audience ?? (settings.audience || undefined),
      iss: flags.issuer ?? (settings.issuer || undefined),
      info: parseInfo(flags.info),
      ...kindClaims,
    },
    settings.hmac_secret_key,
  )
}

/** @type {Record<string, Flag>} */
const TOKEN_FLAGS = {
  user: { type: 'string', short: 'u' },
  ttl: { type: 'string', short: 't' },
  info: { type: 'string' },
  audience: { type: 'string' },
  issuer: { type: 'string' },
}

const TOKEN_FLAGS_HELP = `  -c, --config FILE      configuration with the secret (or set HALLEY_CLIENT_TOKEN_HMAC_SECRET_KEY)
  -u, --user USER        user id; default: the anonymous user
  -t, --ttl TIME         30m, 24h ... or seconds; 0: never expires; default: 24h
      --info JSON        JSON object shown to other clients with the user
      --audience AUD     aud claim; default: from the configuration
      --issuer ISS       iss claim; default: from the configuration`

/** @type {Command} */
export const token = {
  name: 'token',
  summary: 'make a connection token',
  help: `Usage: ${COMMAND} token [flags]

Prints a connection token (JWT, HS256) signed with client.token.hmac_secret_key.

${TOKEN_FLAGS_HELP}
      --channel CHANNEL  channel to subscribe the connection to; can be repeated
  -h, --help             print this text
  -V, --version          print the version

Examples:
  ${COMMAND} token -c config.json -u 42
  ${COMMAND} token -c config.json -u 42 --ttl 1h --info '{"name":"Ann"}' --channel news
`,
  flags: { config: CONFIG_FLAG, ...TOKEN_FLAGS, channel: { type: 'string', multiple: true } },

  run(io, flags) {
    io.stdout(`${makeToken(io, flags, 'token', { channels: flags.channel })}\n`)
    return 0
  },
}

/** @type {Command} */
export const subtoken = {
  name: 'subtoken',
  summary: 'make a subscription token',
  help: `Usage: ${COMMAND} subtoken --channel CHANNEL [flags]

Prints a subscription token (JWT, HS256) for one user and one channel, signed with
client.subscription_token.hmac_secret_key if that block is enabled, else with client.token.hmac_secret_key.

      --channel CHANNEL  channel, including the $ prefix if any
${TOKEN_FLAGS_HELP}
  -h, --help             print this text
  -V, --version          print the version

Examples:
  ${COMMAND} subtoken -c config.json -u 42 --channel '$news'
  ${COMMAND} subtoken -c config.json -u 42 --channel chat:room --ttl 10m
`,
  flags: { config: CONFIG_FLAG, ...TOKEN_FLAGS, channel: { type: 'string' } },

  run(io, flags) {
    if (!flags.channel) throw new UsageError('--channel is required')
    io.stdout(`${makeToken(io, flags, 'subscription_token', { channel: flags.channel })}\n`)
    return 0
  },
}
