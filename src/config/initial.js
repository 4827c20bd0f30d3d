import { randomBytes } from 'node:crypto'
import { COMMAND } from '../base/version.js'
import { TRANSPORTS } from './check.js'
import { MIN_BYTES } from './profile.js'

const randomSecret = () => randomBytes(MIN_BYTES).toString('hex')

/**
 * @typedef {object} Answers
 * @property {number} port
 * @property {readonly string[]} origins
 * @property {readonly string[]} transports of TRANSPORTS
 * @property {'memory' | 'redis'} engine
 * @property {string} redisAddress
 */

/** @type {Readonly<Answers>} The origin is an example. */
export const DEFAULTS = Object.freeze({
  port: 8000,
  origins: Object.freeze(['https://example.com']),
  transports: Object.freeze([]),
  engine: 'memory',
  redisAddress: 'redis://127.0.0.1:6379',
})

/** JSON text is YAML. @param {string} text */
const quoted = text => JSON.stringify(text)

/** @param {Answers} answers */
function engineOf({ engine, redisAddress }) {
  if (engine === 'memory')
    return `# Channel state in memory, for one machine. Several machines need Redis (\`type: redis\`).
engine:
  type: memory`
  return `# All gateways with the same Redis form one cluster.
engine:
  type: redis
  redis:
    address: ${quoted(redisAddress)}`
}

/** @param {Answers} answers */
function transportsOf({ transports }) {
  const on = transports.map(name => `${name}:\n  enabled: true\n`)
  const off = TRANSPORTS.filter(name => !transports.includes(name))
  const more = off.length === 0 ? '' : ` Others are enabled in the same way: ${off.join(', ')}.`
  return on.length === 0
    ? `# WebSocket is always on. Other transports: ${TRANSPORTS.join(', ')}.\n# sse:\n#   enabled: true\n`
    : `# WebSocket is always on.${more}\n${on.join('')}`
}

/** Initial YAML for a public gateway. @param {Answers} [answers] @param {() => string} [secret] */
export const initialText = (
  answers = DEFAULTS,
  secret = randomSecret,
) => `# A Halley gateway. All keys: docs/config.md, or \`${COMMAND} config doc\`.

http_server:
  port: ${answers.port}

client:
  token:
    # Your backend signs client tokens with this key (HS256).
    hmac_secret_key: ${quoted(secret())}
  # Origins of your pages: scheme, host and port, as browsers send them.
  allowed_origins:
${answers.origins.map(origin => `    - ${quoted(origin)}\n`).join('')}
http_api:
  # Your backend sends this key with each server API request (X-API-Key).
  key: ${quoted(secret())}

admin:
  # Key of the admin page, and of the dashboard from another machine.
  password: ${quoted(secret())}

${transportsOf(answers)}
${engineOf(answers)}

channel:
  # Channels without a colon in their name: clients subscribe, your backend publishes.
  without_namespace:
    allow_subscribe_for_client: true
  namespaces:
    # Channels \`chat:...\`: clients also publish, and see each other.
    - name: chat
      allow_subscribe_for_client: true
      allow_publish_for_subscriber: true
      # List the subscribers, and send them joins and leaves.
      presence: true
      allow_presence_for_subscriber: true
      join_leave: true
      force_push_join_leave: true
      # Keep 100 messages for ten minutes: clients that reconnect receive the messages they missed.
      history_size: 100
      history_ttl: 10m
      force_recovery: true
      allow_history_for_subscriber: true

# GET /health returns 200 while all workers listen and the engine is reachable.
health:
  enabled: true
`
