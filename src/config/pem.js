// Certificates and keys: PEM text, base64 of it, or the path of a file.

import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

/** @import { KeyObject } from 'node:crypto' */
/** @import { ConnectionOptions } from 'node:tls' */
/** @import { Report } from './error.js' */
/** @import { ClientTls, Config } from './options.js' */

/** @typedef {Config['http_server']['tls']} ServerTls */
/** @typedef {{-readonly [K in keyof ServerTls]: ServerTls[K]}} MutableTls */

const BEGIN = '-----BEGIN '
const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/

/** @type {Record<string, string>} */
const REASONS = { EACCES: 'is a file without read permission', EISDIR: 'is a directory' }

/**
 * Errors omit the value (it may be a private key) and follow the name of the option.
 * @param {string} value
 * @throws {Error}
 */
function readPem(value) {
  if (value.includes(BEGIN)) return value
  if (BASE64.test(value)) {
    const text = Buffer.from(value, 'base64').toString()
    if (text.includes(BEGIN)) return text
  }
  let text
  try {
    text = readFileSync(value, 'utf8')
  } catch ({ code }) {
    if (REASONS[code] !== undefined) throw new Error(REASONS[code])
    throw new Error('is neither PEM, base64 of PEM, nor the path of a file')
  }
  if (!text.includes(BEGIN)) throw new Error('is a file that contains no PEM')
  return text
}

/** The first. @param {string} pem @throws {Error} */
export function certificate(pem) {
  try {
    return new X509Certificate(pem)
  } catch {
    throw new Error('is not a certificate')
  }
}

/** @param {string} pem @throws {Error} */
function privateKey(pem) {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw new Error(error.code === 'ERR_MISSING_PASSPHRASE' ? 'is an encrypted key' : 'is not a private key')
  }
}

/**
 * Checks the certificate, key and CA, unless empty.
 * @template {string} K
 * @param {Readonly<Record<K | 'cert_pem' | 'key_pem', string>>} tls
 * @param {K} ca
 * @param {(key: string, fault: string) => void} refuse
 * @returns {X509Certificate | null}
 */
function checkPair(tls, ca, refuse) {
  /** @template T @param {K | 'cert_pem' | 'key_pem'} name @param {(pem: string) => T} parse @returns {T | null} */
  const read = (name, parse) => {
    if (tls[name] === '') return null
    try {
      return parse(readPem(tls[name]))
    } catch (error) {
      refuse(name, error.message)
      return null
    }
  }
  read(ca, certificate)
  const cert = read('cert_pem', certificate)
  const key = read('key_pem', privateKey)
  if (cert && key && !cert.checkPrivateKey(key)) refuse('key_pem', 'is not the key of cert_pem')
  return cert
}

/** @param {ClientTls} tls @param {(key: string, fault: string) => void} refuse */
function checkClientTls(tls, refuse) {
  checkPair(tls, 'server_ca_pem', refuse)
  if (tls.cert_pem !== '' && tls.key_pem === '') refuse('cert_pem', 'needs key_pem too')
  if (tls.key_pem !== '' && tls.cert_pem === '') refuse('key_pem', 'needs cert_pem too')
}

/** @param {string} path @param {ClientTls} tls @param {Report} report */
export const checkTls = (path, tls, { refuse }) =>
  checkClientTls(tls, (key, fault) => refuse([`${path}.${key}`], fault))

/** @param {ClientTls} tls @returns {ConnectionOptions} @throws {Error} naming a key of the block */
export function tlsOptions(tls) {
  checkClientTls(tls, (key, fault) => {
    throw new Error(`${key} ${fault}`)
  })
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
 * Verifies tokens. Errors follow the key of the option.
 * @param {string} pem public key or certificate
 * @param {'rsa' | 'ec'} type
 * @returns {KeyObject}
 * @throws {Error}
 */
export function readPublicKey(pem, type) {
  // Private keys do not belong in this configuration.
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

export const TLS_BLOCKS = /** @type {const} */ (['tls', 'internal_tls'])

/**
 * @param {Config['http_server']} server
 * @returns {{clients: ServerTls | null, internal: ServerTls | null}} null: plain HTTP
 */
export function tlsOf({ tls, internal_tls: internal }) {
  const clients = tls.enabled ? tls : null
  return { clients, internal: internal.enabled ? internal : clients }
}

/**
 * Enabling or disabling TLS requires a restart; until then a port keeps its certificate.
 * @param {Config} next @param {Config} now
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
 * Replaces paths and base64 in the enabled TLS blocks by PEM text, in the primary: all workers get the same pair,
 * even if the files change meanwhile.
 * @param {Config['http_server']} server not frozen @param {Report} report
 */
export function readServerTls(server, report) {
  for (const block of TLS_BLOCKS)
    if (server[block].enabled) readBlock(server[block], block, server.driver, report)
  if (server.internal_tls.enabled && server.internal_port === 0)
    report.warn('http_server.internal_tls.enabled', 'has no effect: http_server.internal_port is 0')
}

/** @param {MutableTls} tls @param {string} block @param {string} driver @param {Report} report */
function readBlock(tls, block, driver, report) {
  const path = `http_server.${block}`
  const before = report.faults.length
  const refuse = (/** @type {string} */ key, /** @type {string} */ text) =>
    report.refuse([`${path}.${key}`], text)
  for (const key of /** @type {const} */ (['cert_pem', 'key_pem']))
    if (tls[key] === '') refuse(key, `is empty; ${path} needs it`)
  if (report.faults.length > before) return
  for (const key of /** @type {const} */ (['cert_pem', 'key_pem', 'client_ca_pem'])) {
    try {
      if (tls[key] !== '') tls[key] = readPem(tls[key])
    } catch {
      // checkPair() reports it.
    }
  }
  const cert = checkPair(tls, 'client_ca_pem', refuse)
  if (block === 'tls' && tls.client_ca_pem !== '' && driver === 'uws')
    refuse('client_ca_pem', 'needs http_server.driver auto or node: uws cannot require client certificates')
  if (cert === null || report.faults.length > before) return
  try {
    createSecureContext({ cert: tls.cert_pem, key: tls.key_pem, ca: tls.client_ca_pem || undefined })
  } catch (error) {
    // OpenSSL refuses short keys and old digests.
    return refuse('cert_pem', `cannot be used: ${error.message}`)
  }
  const now = Date.now()
  if (Date.parse(cert.validTo) < now)
    report.warn(`${path}.cert_pem`, `the certificate expired on ${cert.validTo}`)
  if (Date.parse(cert.validFrom) > now)
    report.warn(`${path}.cert_pem`, `the certificate is not valid before ${cert.validFrom}`)
}
