// Options of TLS blocks.

import { bool, string } from './make.js'

/** Forms of a certificate or key. */
export const PEM = 'PEM text, base64 of it, or the path of a file.'

/**
 * Of connections that Halley opens.
 * @param {string} block path @param {string} enabled doc of the switch @param {string} peers servers that it is about
 * @param {'address' | 'endpoint'} key of their host
 */
export const clientTls = (block, enabled, peers, key) => [
  bool(`${block}.enabled`, enabled),
  string(`${block}.cert_pem`, '', `Client certificate for ${peers}: ${PEM}`),
  string(`${block}.key_pem`, '', `Key of the client certificate: ${PEM}`, { secret: true }),
  string(
    `${block}.server_ca_pem`,
    '',
    `CA certificates that verify ${peers}: ${PEM} Empty: the CAs of Node.js.`,
  ),
  string(
    `${block}.server_name`,
    '',
    `Name that the certificate must contain. Empty: the host of the ${key}.`,
  ),
  bool(`${block}.insecure_skip_verify`, 'Accept any certificate. For tests only.'),
]
