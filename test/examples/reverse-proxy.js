// A small reverse proxy: one origin for a program and its gateway, like the nginx configuration of the examples.

import http from 'node:http'
import { connect } from 'node:net'
import { listen } from '../kit/ports.js'

/** Paths of the gateway's clients. */
const CLIENTS = /^\/(?:connection\/|emulation$)/

export async function startReverseProxy(t) {
  const targets = { app: '', gateway: '' }
  const targetOf = ({ url = '' }) => new URL(CLIENTS.test(url) ? targets.gateway : targets.app)
  const server = http.createServer((request, response) => {
    const { hostname, port } = targetOf(request)
    const { method, url: path, headers } = request
    const passed = http.request({ hostname, port, method, path, headers, agent: false }, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.writeHead(502).end())
    request.pipe(passed)
  })
  /** @type {Set<import('node:stream').Duplex>} */
  const upgraded = new Set()
  server.on('upgrade', (request, socket, head) => {
    const { hostname, port } = targetOf(request)
    const { method, url, rawHeaders } = request
    const lines = [`${method} ${url} HTTP/1.1`]
    for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
    const target = connect(Number(port), hostname, () => {
      target.write(`${lines.join('\r\n')}\r\n\r\n`)
      target.write(head)
      socket.pipe(target).pipe(socket)
    })
    for (const [end, other] of [
      [socket, target],
      [target, socket],
    ]) {
      upgraded.add(end)
      end.on('error', () => {})
      end.on('close', () => other.destroy())
    }
  })
  t.teardown(() => {
    for (const socket of upgraded) socket.destroy()
  })
  return { targets, origin: `http://127.0.0.1:${await listen(t, server)}` }
}
