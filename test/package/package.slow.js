// The package of `npm pack` and `npm publish`, used by ES modules, CommonJS and TypeScript programs.

import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { binaryOf } from '../../scripts/prune-binaries.js'
import { tempDir, testdir } from '../kit/folders.js'
import { freePort, listen } from '../kit/ports.js'
import { run } from '../kit/programs.js'
import { linkPackages, modules, packOnce, root, unpack } from './packed.js'
import { testChat, testProgram } from './typescript.js'

/** Files of each top folder, at least and at most, and their kinds. @type {Record<string, [number, number, RegExp]>} */
const FOLDERS = {
  bin: [1, 3, /\.js$/],
  client: [1, 6, /\.js$/],
  dashboard: [30, 80, /\.js$/],
  deploy: [0, 80, /./],
  docs: [20, 80, /\.(?:md|json|yaml|yml|svg|png|webp|csv)$/],
  examples: [8, 90, /./],
  fleet: [90, 200, /\.(?:js|sh|json)$/],
  scripts: [1, 1, /^scripts\/prune-binaries\.js$/],
  src: [300, 700, /\.(?:js|css|html|lua|proto|svg|d\.ts)$/],
  types: [8, 120, /\.d\.ts$/],
}
const TOP_FILES = /^(?:README|CHANGELOG|CONTRIBUTING|SECURITY)\.md$|^LICENSE$|^package\.json$/
const UNWANTED =
  /(?:^|\/)\.|(?:^|\/)(?:test|tests|bench|node_modules)\/|\.(?:map|tgz|log|orig|rej|tmp|pem|key|env|slow\.js|unit\.js|test\.js)$|~$/
/** Private keys and tokens of services. */
const SECRETS =
  /-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=\s]{100}|\bAKIA[A-Z0-9]{16}\b|\b(?:ghp|npm)_[A-Za-z0-9]{36}\b/
/** Bytes. */
const MOST_PACKED = 2e6
const MOST_UNPACKED = 6e6

t.test('the package contains only the needed files', async t => {
  const { source, files, size, unpackedSize } = await packOnce()
  const mb = bytes => `${(bytes / 1e6).toFixed(2)} MB`
  t.comment(`tarball ${mb(size)}, unpacked ${mb(unpackedSize)}, ${files.length} files`)
  t.ok(size < MOST_PACKED && unpackedSize < MOST_UNPACKED, `${mb(size)}, ${mb(unpackedSize)}`)
  const stated = /tarball of ([\d.]+) MB, ([\d.]+) MB unpacked/.exec(
    await readFile(join(root, 'docs/install.md'), 'utf8'),
  )
  for (const [at, bytes] of [size, unpackedSize].entries())
    t.ok(Math.abs(Number(stated?.[at + 1]) * 1e6 - bytes) < 0.15 * bytes, `docs/install.md: ${mb(bytes)}`)
  const paths = files.map(({ path }) => path)
  for (const [folder, [least, most, kinds]] of Object.entries(FOLDERS)) {
    const inside = paths.filter(path => path.startsWith(`${folder}/`))
    t.ok(inside.length >= least && inside.length <= most, `${folder}: ${inside.length} files`)
    t.same(
      inside.filter(path => !kinds.test(path)),
      [],
      `${folder}: other kinds of files`,
    )
  }
  const others = paths.filter(path => !Object.hasOwn(FOLDERS, path.split('/')[0]) && !TOP_FILES.test(path))
  t.same(others, [], 'other files and folders')
  t.same(
    paths.filter(path => UNWANTED.test(path)),
    [],
    'dotfiles, tests, source maps, temporary files',
  )
  const secret = []
  for (const path of paths) if (SECRETS.test(await readFile(join(source, path), 'utf8'))) secret.push(path)
  t.same(secret, [])
  const tracked = await run(t, 'git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
  })
  if (tracked.code !== 0) return
  const known = new Set(tracked.stdout.split('\0'))
  t.same(
    paths.filter(path => !path.startsWith('types/') && !known.has(path)),
    [],
    'files that git ignores',
  )
})

t.test('npm publish corrects nothing and prints no warning', async t => {
  const { source } = await packOnce()
  // It requests the last version from the registry: none here.
  const registry = createServer((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}')
  })
  const host = `127.0.0.1:${await listen(t, registry)}`
  const folder = testdir(t, { npmrc: `registry=http://${host}/\n//${host}/:_authToken=none\n` })
  const own = ['--userconfig', join(folder, 'npmrc')]
  // Settings inherited from a surrounding `npm test` cause warnings.
  const inherited = Object.keys(process.env).filter(name => /^npm_/i.test(name))
  const env = {
    ...Object.fromEntries(inherited.map(name => [name, undefined])),
    npm_config_registry: `http://${host}/`,
    npm_config_loglevel: 'notice',
  }
  const published = await run(t, 'npm', ['publish', '--dry-run', '--ignore-scripts', ...own], {
    cwd: source,
    env,
  })
  t.equal(published.code, 0, published.output)
  t.match(published.output, /\+ halley-gateway@\d+\.\d+\.\d+/)
  t.notMatch(published.output, /npm (?:warn|error)/i)

  const file = join(source, 'package.json')
  const before = await readFile(file, 'utf8')
  const fixed = await run(t, 'npm', ['pkg', 'fix', ...own], { cwd: source, env })
  t.equal(fixed.output, '')
  t.equal(await readFile(file, 'utf8'), before, 'npm pkg fix changes nothing')
})

/** @param {string} load how the packages are loaded @param {string} main whether statements may wait */
const program = (load, main) => `${load}
${main}
  const [port, driver] = process.argv.slice(2)
  const gateway = await createGateway({
    config: {
      workers: 1,
      log: { level: 'none' },
      stats: { socket: 'none' },
      http_server: { address: '127.0.0.1', port: Number(port), driver },
      http_api: { key: 'b25lIGtleSBmb3IgdGhlIHBhY2thZ2UncyB0ZXN0' },
      client: { allow_anonymous_connect_without_token: true },
      channel: {
        without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
      },
    },
  })
  const api = new ApiClient({ url: gateway.url, key: 'b25lIGtleSBmb3IgdGhlIHBhY2thZ2UncyB0ZXN0' })
  const client = new Centrifuge(gateway.url.replace('http', 'ws') + '/connection/websocket', { websocket: WebSocket })
  const subscription = client.newSubscription('news')
  const received = new Promise(resolve => subscription.on('publication', ({ data }) => resolve(data.text)))
  const subscribed = new Promise(resolve => subscription.on('subscribed', resolve))
  subscription.on('unsubscribed', ({ code, reason }) => {
    throw new Error(code + ' ' + reason)
  })
  subscription.subscribe()
  client.connect()
  await subscribed
  await api.publish('news', { text: 'hello' })
  console.log(process.versions.node.split('.')[0], await received, typeof defineHooks, typeof LongPollSocket)
  client.disconnect()
  api.close()
  await gateway.stop()
`

const ESM = program(
  `import { Centrifuge } from 'centrifuge'
import { createGateway } from 'halley-gateway'
import { ApiClient } from 'halley-gateway/api'
import { LongPollSocket } from 'halley-gateway/client'
import { defineHooks } from 'halley-gateway/hooks'
import WebSocket from 'ws'`,
  '{',
)
const COMMON = program(
  `const { Centrifuge } = require('centrifuge')
const { createGateway } = require('halley-gateway')
const { ApiClient } = require('halley-gateway/api')
const { LongPollSocket } = require('halley-gateway/client')
const { defineHooks } = require('halley-gateway/hooks')
const WebSocket = require('ws')`,
  'async function main() {',
)

/**
 * @param {any} t @param {number} major
 * @returns {Promise<string>} path of such a Node.js; '': the registry gave none
 */
async function nodeOf(t, major) {
  if (Number(process.versions.node.split('.')[0]) === major) return process.execPath
  const args = ['--yes', `--package=node@${major}`, '--', 'node', '-p', 'process.execPath']
  // Without a network, npm would retry for 90 s.
  const pauses = { npm_config_fetch_retry_mintimeout: '1000', npm_config_fetch_retry_maxtimeout: '2000' }
  const { code, stdout } = await run(t, 'npx', args, { cwd: tmpdir(), env: pauses })
  return code === 0 ? stdout.trim() : ''
}

t.test('ES modules and CommonJS start a gateway on Node.js 20, 22 and 24', async t => {
  const { manifest } = await packOnce()
  // Outside of the repository, only installed packages are found.
  const folder = tempDir(t)
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  await writeFile(join(folder, 'program.mjs'), `${ESM}}\n`)
  await writeFile(join(folder, 'program.cjs'), `${COMMON}}\nmain()\n`)
  await unpack(t, folder)
  await linkPackages(folder, Object.keys(manifest.dependencies))

  const uws = join(folder, 'node_modules/uWebSockets.js')
  const own = binaryOf(process)
  await mkdir(uws)
  await writeFile(join(uws, 'uws_linux_arm_83.node'), 'x'.repeat(1e6))
  for (const name of ['package.json', 'uws.js', 'ESM_wrapper.mjs', own])
    await copyFile(join(modules, 'uWebSockets.js', name), join(uws, name))
  const script = join(folder, 'node_modules/halley-gateway/scripts/prune-binaries.js')
  const pruned = await run(t, process.execPath, [script], { cwd: folder })
  t.equal(pruned.output, `removed 1 binaries of uWebSockets.js, 1 MB; ${own} stays\n`)
  t.same((await readdir(uws)).sort(), ['ESM_wrapper.mjs', 'package.json', 'uws.js', own].sort())

  for (const major of [20, 22, 24]) {
    const node = await nodeOf(t, major)
    t.test(`Node.js ${major}`, { skip: node === '' && `npx finds no Node.js ${major}` }, async t => {
      // The remaining binary is for the current Node.js.
      const isOwn = node === process.execPath
      const loads =
        isOwn && (await run(t, node, ['-e', 'require("uWebSockets.js")'], { cwd: folder })).code === 0
      for (const name of ['program.mjs', 'program.cjs']) {
        const args = [name, String(await freePort()), loads ? 'uws' : 'node']
        const { code, stdout, output } = await run(t, node, args, { cwd: folder })
        t.equal(code, 0, output)
        t.equal(stdout, `${major} hello function function\n`, name)
      }
    })
  }

  const command = join(folder, 'node_modules/halley-gateway', manifest.bin.halley)
  const version = await run(t, process.execPath, [command, '--version'], { cwd: folder })
  t.equal(version.stdout, `halley ${manifest.version}\n`, version.output)
})

t.test('a strict TypeScript program compiles with the packed package and runs', testProgram)
t.test('the TypeScript chat compiles, and its hooks run with another copy of the package', testChat)
