// TLS clients of a gateway, and its certificates, made by openssl.

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

/** A certificate authority with certificates of the gateway, in files that are renewed as by an ACME client. */
export class Certificates {
  #made = 0

  /** @param {string} folder */
  constructor(folder) {
    this.authority = makeAuthority(folder, 'authority')
    this.other = makeAuthority(folder, 'other-authority')
    this.certFile = `${folder}/fullchain.pem`
    this.keyFile = `${folder}/privkey.pem`
    this.renew()
  }

  get ca() {
    return this.authority.pem
  }

  /** @returns {string} serial number of the new certificate */
  renew() {
    const { pem, key } = this.authority.sign(`gateway-${++this.#made}`, NAMES)
    this.replace(pem, key)
    return serialOf(pem)
  }

  /** @param {string} cert PEM @param {string} key PEM */
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

const serialOf = pem => new X509Certificate(pem).serialNumber

/** A TLS handshake; rejects if it fails. @param {number} port @param {tls.ConnectionOptions} options */
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
 * @param {string} url @param {https.RequestOptions & {body?: string, until?: string}} options `until`: cuts the
 *   response after this text
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

/** A client of the official SDK. @param {string} ca PEM, trusted alone */
export function sdk(t, port, ca) {
  class TrustingSocket extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols, { ca })
    }
  }
  const client = new Centrifuge(`wss://127.0.0.1:${port}/connection/websocket`, {
    websocket: TrustingSocket,
    minReconnectDelay: 10,
    maxReconnectDelay: 500,
  })
  t.teardown(() => client.disconnect())
  return client
}
