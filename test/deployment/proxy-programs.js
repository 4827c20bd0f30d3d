// The reverse proxies of docs/deployment.md, with the files of examples/deployment as they are: only ports, addresses
// and paths are those of the test.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { until } from '../kit/wait.js'

/** Ends the program properly with the process of the test, even if that is killed. */
const GUARD = ['/usr/bin/setpriv', '--pdeathsig', 'TERM']

/**
 * @typedef {object} Place
 * @property {string} folder of the proxy's files
 * @property {number} plain port of HTTP
 * @property {number} secure port of HTTPS
 * @property {number} certbot port of certbot
 * @property {string} certificates folder with fullchain.pem, privkey.pem, haproxy.pem
 * @property {string[]} nodes addresses of the two, `host:port`
 * @property {number} internal port of their health
 */

/**
 * @typedef {object} ProxyKind
 * @property {string} file name in examples/deployment
 * @property {string} notFound what answers 404, in its configuration
 * @property {boolean} keeps whether connections live on after a reload
 * @property {(place: Place) => [string, string][]} replacements in the file
 * @property {(file: string, place: Place) => string[]} command
 * @property {(file: string, place: Place) => string[] | NodeJS.Signals} reload a command, or a signal to the process
 */

/** @type {Record<string, ProxyKind>} */
export const PROXIES = {
  nginx: {
    file: 'nginx.conf',
    notFound: 'return 404',
    keeps: true,
    replacements: place => [
      ['user www-data;', process.getuid?.() === 0 ? 'user root;' : ''],
      ['pid /run/nginx.pid;', `pid ${place.folder}/nginx.pid;`],
      ['/var/log/nginx/', `${place.folder}/`],
      ['http {\n', `http {\n${temporaryFolders(place.folder)}`],
      ['listen [::]:80;', ''],
      ['listen [::]:443 ssl so_keepalive=on;', ''],
      ['listen 80;', `listen 127.0.0.1:${place.plain};`],
      ['listen 443 ssl', `listen 127.0.0.1:${place.secure} ssl`],
      ['https://$host$', `https://$host:${place.secure}$`],
      ['gateway.example.com', 'localhost'],
      ['/etc/ssl/halley', place.certificates],
      ['127.0.0.1:8402', `127.0.0.1:${place.certbot}`],
      ['halley-1:8000', place.nodes[0]],
      ['halley-2:8000', place.nodes[1]],
    ],
    command: (file, { folder }) => nginxCommand(file, folder),
    reload: () => 'SIGHUP',
  },
  haproxy: {
    file: 'haproxy.cfg',
    notFound: 'return status 404',
    keeps: true,
    replacements: place => [
      // More than the machine of a test may allow.
      ['maxconn 100000', 'maxconn 1000'],
      ['  user haproxy\n  group haproxy\n', ''],
      ['log /dev/log local0', 'log stdout format raw local0'],
      ['bind :80\n', `bind 127.0.0.1:${place.plain}\n`],
      ['bind :443 ', `bind 127.0.0.1:${place.secure} `],
      ['redirect scheme https code 301', `redirect prefix https://localhost:${place.secure} code 301`],
      ['/etc/ssl/halley', place.certificates],
      ['127.0.0.1:8402', `127.0.0.1:${place.certbot}`],
      ['check port 8001', `check port ${place.internal}`],
      ['halley-1:8000', place.nodes[0]],
      ['halley-2:8000', place.nodes[1]],
    ],
    command: file => ['haproxy', '-W', '-f', file],
    reload: () => 'SIGUSR2',
  },
  caddy: {
    file: 'Caddyfile',
    notFound: 'respond 404',
    keeps: false,
    replacements: place => [
      [
        'gateway.example.com {\n',
        `{\n\tadmin unix/${place.folder}/admin.sock\n\tdefault_bind 127.0.0.1\n\thttp_port ${place.plain}\n\thttps_port ${place.secure}\n}\n` +
          `localhost {\n\ttls ${place.certificates}/fullchain.pem ${place.certificates}/privkey.pem\n`,
      ],
      ['health_port 8001', `health_port ${place.internal}`],
      ['halley-1:8000', place.nodes[0]],
      ['halley-2:8000', place.nodes[1]],
    ],
    command: file => ['caddy', 'run', '--adapter', 'caddyfile', '--config', file],
    reload: (file, { folder }) => [
      ...['caddy', 'reload', '--adapter', 'caddyfile', '--config', file],
      ...['--address', `unix/${folder}/admin.sock`],
    ],
  },
}

/** @param {string} folder @returns {string} lines of the block `http`: nginx writes nowhere else */
export const temporaryFolders = folder =>
  ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `  ${name}_temp_path ${folder}/${name};\n`)
    .join('')

export const nginxCommand = (file, folder) => [
  ...['nginx', '-p', folder, '-e', `${folder}/error.log`, '-c', file, '-g', 'daemon off;'],
]

/**
 * @param {string} name of a file in examples/ @param {[string, string][]} replacements
 * @returns {Promise<string>} its text with them
 * @throws {Error} if it has no place for one of them
 */
export async function adapted(name, replacements) {
  let content = await readFile(fileURLToPath(new URL(`../../examples/${name}`, import.meta.url)), 'utf8')
  for (const [from, to] of replacements) {
    if (!content.includes(from)) throw new Error(`examples/${name} has no ${JSON.stringify(from)}`)
    content = content.replaceAll(from, to)
  }
  return content
}

/**
 * One request on a connection of its own; its path is sent as it is.
 * @param {string} url `https://localhost:PORT` @param {string} path @param {string} ca
 * @param {Record<string, string>} [headers]
 * @returns {Promise<{status: number, headers: import('node:http').IncomingHttpHeaders, text: string}>}
 */
export async function get(url, path, ca, headers = {}) {
  const { hostname, port } = new URL(url)
  const request = https.request({ hostname, port, path, ca, headers, agent: false })
  request.end()
  const [response] = await once(request, 'response')
  return { status: response.statusCode, headers: response.headers, text: await text(response) }
}

/** A running proxy. */
export class ReverseProxy {
  #child
  #program
  /** @type {Promise<unknown>} */
  #ended
  /** @type {string[]} what it has said last */
  output = []

  constructor(command, folder) {
    const [program, ...args] = [...(existsSync(GUARD[0]) ? GUARD : []), ...command]
    this.#program = command[0]
    this.env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
    this.#child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: this.env })
    this.#ended = once(this.#child, 'exit')
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      createInterface({ input: stream }).on('line', line => {
        this.output.push(line)
        if (this.output.length > 50) this.output.shift()
      })
    }
  }

  /** @param {() => Promise<boolean>} serves @returns {Promise<void>} when it does; rejects when it ends before */
  async started(serves) {
    const ended = this.#ended.then(() => {
      throw new Error(`the proxy has ended: ${this.output.join('; ')}`)
    })
    await Promise.race([until(serves, () => this.output.join('; ')), ended])
    ended.catch(() => {})
  }

  /** @param {string[] | NodeJS.Signals} how */
  async reload(how) {
    if (typeof how === 'string') {
      this.#child.kill(how)
      return
    }
    const child = spawn(how[0], how.slice(1), { stdio: ['ignore', 'ignore', 'pipe'], env: this.env })
    const [fault, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    if (code !== 0) throw new Error(fault)
  }

  async stop() {
    // Caddy, which is one process, would wait for its idle connections.
    this.#child.kill(this.#program === 'caddy' ? 'SIGKILL' : 'SIGTERM')
    await this.#ended
  }
}

/**
 * Starts a proxy; it ends with the test.
 * @param {any} t @param {ProxyKind} kind @param {Place} place @param {string} ca
 */
export async function startProxy(t, kind, place, ca) {
  const file = join(place.folder, kind.file)
  const content = await adapted(`deployment/${kind.file}`, kind.replacements(place))
  await writeFile(file, content)
  let proxy = new ReverseProxy(kind.command(file, place), place.folder)
  t.teardown(() => proxy.stop())
  const url = `https://localhost:${place.secure}`
  const answers = status => async () => (await get(url, '/', ca)).status === status
  await proxy.started(answers(404))
  return {
    url,
    /** Applies another configuration; resolves when it is in effect. */
    async reload() {
      if (!content.includes(kind.notFound)) throw new Error(`${kind.file} has no ${kind.notFound}`)
      await writeFile(file, content.replaceAll(kind.notFound, kind.notFound.replace('404', '410')))
      try {
        await proxy.reload(kind.reload(file, place))
        await proxy.started(answers(410))
      } catch (error) {
        // Caddy 2.6 of Debian 13 panics when a reload meets open streams (docs/deployment.md): it is started again.
        if (!proxy.output.some(line => line.includes('internal error: missing cancel error'))) throw error
        await proxy.stop()
        await rm(join(place.folder, 'admin.sock'), { force: true })
        proxy = new ReverseProxy(kind.command(file, place), place.folder)
        await proxy.started(answers(410))
      }
    },
  }
}
