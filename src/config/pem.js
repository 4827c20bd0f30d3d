// Certificates and keys in the configuration: PEM text, base64 of it, or the path of a file.

import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** @import { KeyObject } from 'node:crypto' */
/** @import { ConnectionOptions } from 'node:tls' */

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

/** @param {Readonly<Record<string, any>>} tls a TLS block @returns {[string, string][]} keys with their faults */
export function tlsFaults(tls) {
  /** @type {[string, string][]} */
  const faults = []
  /** @template T @param {string} key @param {(pem: string) => T} parse @returns {T | null} */
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
 * @param {Readonly<Record<string, any>>} tls a TLS block @returns {ConnectionOptions}
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
