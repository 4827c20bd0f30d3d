import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** @import { TemplatedApp } from 'uWebSockets.js' */

/**
 * PEM text, for TLS 1.2 and 1.3.
 * @typedef {object} ServerTls
 * @property {string} cert_pem with the intermediate certificates
 * @property {string} key_pem
 * @property {string} client_ca_pem of required client certificates; '' = none
 */

/** Memory first: the key is not written to disk, and the file system may be read-only. */
const PLACES = ['/dev/shm', tmpdir()]

/** @param {ServerTls} tls @returns {import('node:tls').SecureContextOptions & import('node:tls').TlsOptions} */
export function nodeTls({ cert_pem: cert, key_pem: key, client_ca_pem: ca }) {
  const clients = ca === '' ? {} : { ca, requestCert: true, rejectUnauthorized: true }
  return { cert, key, minVersion: 'TLSv1.2', ...clients }
}

/**
 * uWebSockets.js reads PEM only from files, while creating the application.
 * @param {typeof import('uWebSockets.js')} uws @param {ServerTls} tls
 * @returns {TemplatedApp}
 * @throws {Error} one line
 */
export function createSecureApp(uws, { cert_pem, key_pem }) {
  const folder = privateFolder()
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  try {
    writeFileSync(files.cert, cert_pem, { mode: 0o600 })
    writeFileSync(files.key, key_pem, { mode: 0o600 })
    const [cert_file_name, key_file_name] = [files.cert, files.key].map(file => Buffer.from(file))
    return uws.SSLApp({ cert_file_name, key_file_name, ssl_prefer_low_memory_usage: true })
  } catch (error) {
    throw new Error(`the socket server cannot use the certificate: ${error?.message ?? error}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Readable only by this user. @throws {Error} */
function privateFolder() {
  let reason = ''
  for (const place of PLACES) {
    try {
      return mkdtempSync(join(place, 'halley-tls-'))
    } catch (error) {
      reason = error.message
    }
  }
  throw new Error(`cannot write a temporary file for the certificate: ${reason}`)
}
