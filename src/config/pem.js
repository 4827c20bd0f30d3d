// Certificates and keys in the configuration: PEM text, base64 of it, or the path of a file.

import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

/** @import { KeyObject } from 'node:crypto' */
/** @import { ConnectionOptions } from 'node:tls' */
/** @import { Report } from './error.js' */
/** @import { ClientTls, Config } from './options.js' */

/** @typedef {Config['http_server']['tls']} ServerTls */

const BEGIN = '-----BEGIN '
const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/

/** @type {Record<string, string>} */
const REASONS = { EACCES: 'may not be read', EISDIR: 'is a directory' }

/**
 * @param {string} value @returns {string} PEM
 * @throws {Error} whose message follows the key and does not show the value: it may be a private key
 */
export function readPem(value) {
  if (value.includes(BEGIN)) return value
  if (BASE64.test(value)) {
    const text = Buffer.from(value, 'base64').toString()
    if (text.includes(BEGIN)) return text
  }
  let text
  try {
    text = readFileSync(value, 'utf8')
  } catch (error) {
    const reason = REASONS[error.code]
    throw new Error(
      reason === undefined
        ? 'is not PEM, not base64 of PEM, and not the path of a file'
        : `is a file that ${reason}`,
    )
  }
  if (!text.includes(BEGIN)) throw new Error('is a file without PEM')
  return text
}

/** @param {string} pem @returns {X509Certificate} the first one @throws {Error} */
export function certificate(pem) {
  try {
    return new X509Certificate(pem)
  } catch {
    throw new Error('is not a certificate')
  }
}

/** @param {string} pem @throws {Error} */
export function privateKey(pem) {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw new Error(error.code === 'ERR_MISSING_PASSPHRASE' ? 'is an encrypted key' : 'is not a private key')
  }
}

/**
 * @param {ClientTls} tls
 * @returns {[string, string][]} keys with their faults
 */
export function tlsFaults(tls) {
  /** @type {[string, string][]} */
  const faults = []
  /** @template T @param {'server_ca_pem' | 'cert_pem' | 'key_pem'} key @param {(pem: string) => T} parse @returns {T | null} */
  const read = (key, parse) => {
    if (tls[key] === '') return null
    try {
      return parse(readPem(tls[key]))
    } catch (error) {
      faults.push([key, error.message])
      return null
    }
  }
  read('server_ca_pem', certificate)
  const cert = read('cert_pem', certificate)
  const key = read('key_pem', privateKey)
  if (cert && key && !cert.checkPrivateKey(key)) faults.push(['key_pem', 'is not the key of cert_pem'])
  if (tls.cert_pem !== '' && tls.key_pem === '') faults.push(['cert_pem', 'needs key_pem too'])
  if (tls.key_pem !== '' && tls.cert_pem === '') faults.push(['key_pem', 'needs cert_pem too'])
  return faults
}

/**
 * @param {string} path of the block
 * @param {ClientTls} tls
 * @param {Report} report
 */
export function checkTls(path, tls, report) {
  for (const [key, fault] of tlsFaults(tls)) report.refuse([`${path}.${key}`], fault)
}

/**
 * @param {ClientTls} tls
 * @returns {ConnectionOptions}
 * @throws {Error} naming a key of the block
 */
export function tlsOptions(tls) {
  const [fault] = tlsFaults(tls)
  if (fault !== undefined) throw new Error(fault.join(' '))
  return {
    ...(tls.server_ca_pem === '' ? {} : { ca: readPem(tls.server_ca_pem) }),
    ...(tls.cert_pem === '' ? {} : { cert: readPem(tls.cert_pem), key: readPem(tls.key_pem) }),
    ...(tls.server_name === '' ? {} : { servername: tls.server_name }),
    ...(tls.insecure_skip_verify ? { rejectUnauthorized: false } : {}),
  }
}

/** Curves of ES256, ES384 and ES512. */
const CURVES = ['prime256v1', 'secp384r1', 'secp521r1']

/**
 * A key that checks tokens.
 * @param {string} pem public key or certificate @param {'rsa' | 'ec'} type
 * @returns {KeyObject}
 * @throws {Error} whose message follows the name of the option
 */
export function readPublicKey(pem, type) {
  // Node.js would make the public key of it: a private key does not belong into a configuration that others read.
  if (pem.includes('PRIVATE KEY-----')) throw new Error('is a private key; set its public key')
  let key
  try {
    key = pem.includes('BEGIN CERTIFICATE') ? new X509Certificate(pem).publicKey : createPublicKey(pem)
  } catch {
    throw new Error('is not a public key or certificate in PEM')
  }
  const { asymmetricKeyType: found, asymmetricKeyDetails: details } = key
  if (found !== type) throw new Error(`is a key of type ${found}, not ${type}`)
  if (type === 'ec' && !CURVES.includes(details?.namedCurve ?? ''))
    throw new Error(`is a key on the curve ${details?.namedCurve}, not on one of ${CURVES.join(', ')}`)
  return key
}

/** The TLS blocks of `http_server`, for the primary and its workers. */
export const TLS_BLOCKS = /** @type {const} */ (['tls', 'internal_tls'])

/**
 * @param {Config['http_server']} server
 * @returns {{clients: ServerTls | null, internal: ServerTls | null}} TLS block of each port; null: plain HTTP
 */
export function tlsOf({ tls, internal_tls: internal }) {
  const clients = tls.enabled ? tls : null
  return { clients, internal: internal.enabled ? internal : clients }
}

/**
 * TLS is switched on and off by a new start, so until then a port keeps the certificate that it has.
 * @param {Config} next of a reload
 * @param {Config} now
 * @returns {Config} `next`
 */
export function withTlsOf(next, now) {
  const server = { ...next.http_server }
  for (const block of TLS_BLOCKS) {
    const { enabled } = server[block]
    if (enabled !== now.http_server[block].enabled) server[block] = { ...now.http_server[block], enabled }
  }
  return { ...next, http_server: server }
}

/**
 * Replaces the values of the TLS blocks in use by the PEM text that they stand for: in the primary, when the
 * configuration is loaded. So all workers have the same pair, also one that starts while the files are being replaced.
 * @param {Record<string, any>} server `http_server` of a configuration in the making
 * @param {Report} report
 */
export function readServerTls(server, report) {
  for (const block of TLS_BLOCKS) if (server[block].enabled) readBlock(server, block, report)
  if (server.internal_tls.enabled && server.internal_port === 0)
    report.warn('http_server.internal_tls.enabled', 'has no effect: http_server.internal_port is 0')
}

/**
 * @param {Record<string, any>} server
 * @param {string} block
 * @param {Report} report
 */
function readBlock(server, block, report) {
  const tls = server[block]
  const path = `http_server.${block}`
  let faults = 0
  const refuse = (/** @type {string} */ key, /** @type {string} */ text) => {
    faults++
    report.refuse([`${path}.${key}`], text)
  }
  /** @template T @param {string} key @param {(pem: string) => T} parse @returns {T | null} */
  const read = (key, parse) => {
    try {
      tls[key] = readPem(tls[key])
      return parse(tls[key])
    } catch (error) {
      refuse(key, error.message)
      return null
    }
  }
  for (const key of ['cert_pem', 'key_pem']) if (tls[key] === '') refuse(key, `is empty; ${path} needs it`)
  if (faults > 0) return
  const cert = read('cert_pem', certificate)
  const key = read('key_pem', privateKey)
  if (tls.client_ca_pem !== '') read('client_ca_pem', certificate)
  if (cert !== null && key !== null && !cert.checkPrivateKey(key))
    refuse('key_pem', 'is not the key of cert_pem')
  if (block === 'tls' && tls.client_ca_pem !== '' && server.driver === 'uws')
    refuse('client_ca_pem', 'needs http_server.driver auto or node: uws cannot require client certificates')
  if (cert === null || faults > 0) return
  try {
    createSecureContext({ cert: tls.cert_pem, key: tls.key_pem, ca: tls.client_ca_pem || undefined })
  } catch (error) {
    // OpenSSL refuses short keys and old digests.
    return refuse('cert_pem', `cannot be used: ${error.message}`)
  }
  const now = Date.now()
  if (Date.parse(cert.validTo) < now)
    report.warn(`${path}.cert_pem`, `the certificate has expired: ${cert.validTo}`)
  if (Date.parse(cert.validFrom) > now)
    report.warn(`${path}.cert_pem`, `the certificate is not valid yet, but from ${cert.validFrom}`)
}
