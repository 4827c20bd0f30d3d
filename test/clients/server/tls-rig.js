// Clients of a gateway with TLS, and its certificates, made by openssl.

import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import tls from 'node:tls'
import { Centrifuge } from 'centrifuge'
import WebSocket from 'ws'
import { makeAuthority } from '../../channels/broker/redis/certificates.js'
import { withoutProgram } from '../../kit/needs.js'

export const skip = withoutProgram('openssl')

const NAMES = 'IP:127.0.0.1,DNS:localhost'

/** A certificate authority with certificates for the gateway, in files that can be renewed as an ACME client does. */
export class Certificates {
  #made = 0

  /** @param {string} folder */
  constructor(folder) {
    this.authority = makeAuthority(folder, 'authority')
    this.stranger = makeAuthority(folder, 'stranger')
    this.certFile = `${folder}/fullchain.pem`
    this.keyFile = `${folder}/privkey.pem`
    this.renew()
  }

  get ca() {
    return this.authority.pem
  }

  /** Replaces both files by a new certificate and its key. @returns {string} its serial number */
  renew() {
    const { pem, key } = this.authority.sign(`gateway-${++this.#made}`, NAMES)
    this.replace(pem, key)
    return serialOf(pem)
  }

  /** @param {string} cert @param {string} key PEM */
  replace(cert, key) {
    for (const [file, text] of [
      [this.certFile, cert],
      [this.keyFile, key],
    ]) {
      writeFileSync(`${file}.new`, text)
      renameSync(`${file}.new`, file)
    }
  }

  /** @param {string} name @param {object} [by] authority @returns {{cert: string, key: string}} of a client */
  client(name, by = this.authority) {
    const { pem, key } = by.sign(name, `DNS:${name}`)
    return { cert: pem, key }
  }
}

/** @param {string} pem */
export const serialOf = pem => new X509Certificate(pem).serialNumber

/**
 * A TLS handshake.
 * @param {number} port @param {tls.ConnectionOptions} options
 * @returns {Promise<{serial: string, protocol: string | null, alpn: string | false | null}>} rejects if it fails
 */
export async function handshake(port, options) {
  const socket = tls.connect({ host: '127.0.0.1', port, servername: 'localhost', ...options })
  try {
    await once(socket, 'secureConnect')
    return {
      serial: socket.getPeerCertificate().serialNumber,
      protocol: socket.getProtocol(),
      alpn: socket.alpnProtocol,
    }
  } finally {
    socket.destroy()
  }
}

/**
 * @param {string} url of https @param {https.RequestOptions & {body?: string, until?: string}} options `until`: the
 *   answer goes on, and is cut after this text
 * @returns {Promise<{status: number | undefined, text: string}>} rejects with the error of the connection
 */
export function request(url, { body, until, ...options }) {
  return new Promise((resolve, reject) => {
    const request = https.request(url, { agent: false, ...options }, response => {
      let text = ''
      const done = () => resolve({ status: response.statusCode, text })
      response.setEncoding('utf8')
      response.on('data', part => {
        text += part
        if (until === undefined || !text.includes(until)) return
        done()
        request.destroy()
      })
      response.on('error', reject)
      response.on('end', done)
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** @param {string} ca PEM @returns {any} a WebSocket for the official SDK that trusts this authority alone */
export const trusting = ca =>
  class extends WebSocket {
    /** @param {string} url @param {any} protocols */
    constructor(url, protocols) {
      super(url, protocols, { ca })
    }
  }

/** @param {any} t @param {number} port @param {string} ca @returns {Centrifuge} connecting over wss */
export function sdk(t, port, ca) {
  const client = new Centrifuge(`wss://127.0.0.1:${port}/connection/websocket`, {
    websocket: trusting(ca),
    minReconnectDelay: 10,
    maxReconnectDelay: 500,
  })
  t.teardown(() => client.disconnect())
  return client
}
