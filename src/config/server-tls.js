// Certificates of the gateway's own ports. They are read when the configuration is loaded, in the primary: its workers
// get their text, so that all of them have the same pair, also one that starts while the files are being replaced.

import { createSecureContext } from 'node:tls'
import { certificate, privateKey, readPem } from './pem.js'
import { TLS_BLOCKS } from './tls-blocks.js'

/** @import { Report } from './error.js' */

/**
 * Replaces the values of the TLS blocks in use by the PEM text that they stand for.
 * @param {Record<string, any>} server `http_server` @param {Report} report
 */
export function readServerTls(server, report) {
  for (const block of TLS_BLOCKS) if (server[block].enabled) readBlock(server, block, report)
  if (server.internal_tls.enabled && server.internal_port === 0)
    report.warn('http_server.internal_tls.enabled', 'has no effect: http_server.internal_port is 0')
}

/** @param {Record<string, any>} server @param {string} block @param {Report} report */
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
