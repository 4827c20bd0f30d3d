import { randomBytes } from 'node:crypto'
import { MIN_BYTES } from './secrets.js'

/** @returns {string} 64 hex digits */
const randomSecret = () => randomBytes(MIN_BYTES).toString('hex')

/**
 * A configuration to start from, for a gateway that others can reach. The origins are an example.
 * @returns {Record<string, unknown>} a tree like that of a file, with new secrets
 */
export const initialTree = () => ({
  http_server: { port: 8000 },
  client: {
    token: { hmac_secret_key: randomSecret() },
    allowed_origins: ['https://example.com'],
  },
  http_api: { key: randomSecret() },
  admin: { password: randomSecret() },
  channel: {
    without_namespace: { allow_subscribe_for_client: true },
    namespaces: [
      {
        name: 'chat',
        presence: true,
        join_leave: true,
        history_size: 100,
        history_ttl: '10m',
        force_recovery: true,
        allow_subscribe_for_client: true,
      },
    ],
  },
  health: { enabled: true },
})
