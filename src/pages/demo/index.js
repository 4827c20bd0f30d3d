// The demo page at `/`: page/ has ES modules, served without a build, with the browser builds of the SDK; feed.js
// publishes the vital signs of all workers to `demo:vitals`. It uses the gateway through WorkerContext like a
// transport. Guarantees: the page never contains the API key; this folder is loaded only with `demo.enabled`.
// README and docs/ are served as text, so that links work offline and match the version.

import { existsSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fillPage, serveBody, serveFile } from '../../clients/server/static-files.js'
import { servePageFiles } from '../files.js'
import { OPERATION, VitalsFeed } from './feed.js'

/** @import { TRANSPORTS } from '../../config/check.js' */
/** @import { Config } from '../../config/options.js' */

const ASSETS = '/demo'

/** Located by the main file, the package's only export. */
const SDK = join(dirname(createRequire(import.meta.url).resolve('centrifuge')), '..', 'dist')

/** @param {string} path in the package */
const packaged = path => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

/** @returns {string[]} README and pages of docs/, if installed */
function docPages() {
  const folder = packaged('docs')
  const pages = existsSync(folder) ? readdirSync(folder).filter(name => name.endsWith('.md')) : []
  return ['README.md', ...pages.map(name => `docs/${name}`)].filter(path => existsSync(packaged(path)))
}

/** Fills in the endpoint addresses. @param {Config} config @param {string} version @param {string[]} docs */
function renderPage(config, version, docs) {
  const { websocket, emulation, http_api: api, admin } = config
  const path = (/** @type {(typeof TRANSPORTS)[number]} */ block) =>
    config[block].enabled ? config[block].handler_prefix : ''
  /** @type {Record<string, string>} '' if switched off */
  const values = {
    version,
    websocket: websocket.disabled ? '' : websocket.handler_prefix,
    httpStream: path('http_stream'),
    sse: path('sse'),
    poll: path('poll'),
    emulation: emulation.handler_prefix,
    uniSse: path('uni_sse'),
    uniHttpStream: path('uni_http_stream'),
    uniPoll: path('uni_poll'),
    api: api.handler_prefix.replace(/\/+$/, ''),
    // An internal port may be unreachable.
    admin:
      admin.enabled && admin.password !== '' && config.http_server.internal_port === 0
        ? admin.handler_prefix
        : '',
    readme: docs.includes('README.md') ? `${ASSETS}/README.md` : '',
    docs: docs.includes('docs/README.md') ? `${ASSETS}/docs/README.md` : '',
  }
  return fillPage(packaged('src/pages/demo/page/index.html'), values)
}

/**
 * Serves the page at `/` and its files below `/demo/`, and starts the feed of vital signs.
 * @param {object} parts
 * @param {import('../../clients/session/context.js').WorkerContext} parts.context
 * @param {import('../../clients/server/contract.js').SocketServer} parts.server not listening yet
 * @param {string} parts.version of the gateway
 * @param {number} parts.index of this worker; the first one publishes
 * @param {{last: import('../../metrics/schema.js').WorkerSample | null}} parts.sampler of this worker
 * @returns {{operations: Record<string, (params: any) => any>, stop: () => void}} survey operations; `stop` ends the
 *   feed
 */
export function mountDemo({ context, server, version, index, sampler }) {
  const docs = docPages()
  server.route('*', '/', serveBody(renderPage(context.config, version, docs), '.html'))
  for (const path of docs) server.route('*', `${ASSETS}/${path}`, serveFile(packaged(path)))
  // Other origins may load the SDK too. Its Protobuf build works without `eval`.
  const shared = { 'Cross-Origin-Resource-Policy': 'cross-origin' }
  server.route('*', `${ASSETS}/centrifuge.js`, serveFile(join(SDK, 'centrifuge.js'), shared))
  servePageFiles(server, ASSETS, 'pages/demo/page', {
    'centrifuge.protobuf.js': join(SDK, 'centrifuge.protobuf.js'),
    'pages/demo/page/long-poll-socket.js': packaged('client/long-poll-socket.js'),
  })
  const feed = new VitalsFeed(context, sampler)
  if (index === 0) feed.start()
  return { operations: { [OPERATION]: params => feed.answer(params) }, stop: () => feed.stop() }
}
