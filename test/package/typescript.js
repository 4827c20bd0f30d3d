// Tests of the package in TypeScript programs: its types in the strictest mode, and its exports.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { blocksOf } from '../docs/blocks.js'
import { startExample } from '../examples/example.js'
import { testdir } from '../kit/folders.js'
import { freePort } from '../kit/ports.js'
import { run } from '../kit/programs.js'
import { RawClient } from '../kit/raw-client.js'
import { linkPackages, modules, packOnce, root, unpack } from './packed.js'

const tsc = join(modules, 'typescript/bin/tsc')

/**
 * A folder that has the packed package installed, and the packages that are at hand here.
 * @param {any} t @param {Record<string, string>} files
 */
async function installed(t, files) {
  const program = testdir(t)
  const { manifest } = await packOnce()
  await unpack(t, program)
  const more = ['@types/node', 'undici-types', 'uWebSockets.js']
  await linkPackages(program, [...Object.keys(manifest.dependencies), ...more])
  for (const [name, content] of Object.entries(files)) await writeFile(join(program, name), content)
  return program
}

const tsconfig = (more, files) =>
  JSON.stringify({
    compilerOptions: {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      target: 'es2023',
      module: 'nodenext',
      moduleResolution: 'nodenext',
      outDir: 'built',
      ...more,
    },
    files,
  })

const PACKAGE = JSON.stringify({ name: 'program', type: 'module', private: true })

/** A strict program compiles against the packed package, and runs. @param {any} t */
export async function testProgram(t) {
  const port = await freePort()
  const folder = await installed(t, {
    'package.json': PACKAGE,
    'tsconfig.json': tsconfig({ lib: ['es2023'], types: ['node'] }, [
      'program.ts',
      'hooks.ts',
      'common.cts',
      'embedded.ts',
    ]),
    'tsconfig.page.json': tsconfig(
      { lib: ['es2023', 'dom', 'dom.iterable'], types: [], module: 'esnext', moduleResolution: 'bundler' },
      ['page.ts'],
    ),
    'page.ts': `
import { Centrifuge } from 'centrifuge'
import { LongPollSocket, onRequest, type RequestHandler } from 'halley-gateway/client'

const socket = new LongPollSocket('ws://127.0.0.1/connection/poll')
socket.send('{}')
socket.close()
export const client = new Centrifuge('ws://127.0.0.1/connection/poll', { websocket: LongPollSocket })
const ping: RequestHandler = async (data, { id, method, channel }) => [data, id, method, channel ?? '']
const stop: () => void = onRequest(client, { ping }, { onError: (error, { method }) => console.log(error, method) })
stop()
`,
    'common.cts': `
import { ConfigError, createGateway, type Gateway } from 'halley-gateway'
import { ApiClient } from 'halley-gateway/api'

export const start = (port: number): Promise<Gateway> => createGateway({ config: { http_server: { port } } })
console.log(typeof start, typeof ApiClient, new ConfigError([]) instanceof Error)
`,
    'hooks.ts': `
import { defineHooks, disconnect, reject } from 'halley-gateway/hooks'

export default defineHooks({
  connect({ token, user }) {
    if (token === null && user === '') throw disconnect(4500, 'no token')
    return { user: token?.user ?? user, subscriptions: { news: { override: { joinLeave: true } } }, expireAt: 0 }
  },
  publish(event) {
    if (typeof event.data.text !== 'string') throw reject(4000, 'a text is wanted', { temporary: false })
    return { data: { text: event.data.text.trim() }, tags: { user: event.user } }
  },
  rpc: {
    async echo({ data, signal }) {
      return signal.aborted ? null : data
    },
  },
  async started(gateway) {
    await gateway.publish('hooks', 'started')
  },
  disconnected({ client, code, reason, channels, duration }) {
    console.log(client, code satisfies number, reason, channels.join(), duration)
  },
})
// @ts-expect-error no such handler
export const wrong = () => defineHooks({ conect() {} })
`,
    'program.ts': `
import { ApiError, ConfigError, createGateway, type Gateway, type GatewayOptions } from 'halley-gateway'
import { ApiClient, type Command, type MapResult, type PublishOptions } from 'halley-gateway/api'
import version from 'halley-gateway/package.json' with { type: 'json' }

const options: GatewayOptions = {
  hooks: new URL('./hooks.js', import.meta.url),
  config: {
    workers: 1,
    log: { level: 'none' },
    stats: { socket: 'none' },
    http_server: { address: '127.0.0.1', port: ${port} },
    http_api: { key: 'dGVzdCBvZiB0aGUgdHlwZXMsIDMyIGJ5dGVz' },
    channel: {
      without_namespace: { history_size: 5, history_ttl: '1m', presence: true },
      namespaces: [{ name: 'map', subscription_type: 'map', map: { mode: 'persistent' } }],
    },
  },
}
const gateway: Gateway = await createGateway(options)
const kept: PublishOptions = { tags: { kind: 'a' }, version: 5n }
const counted: Command = ['presenceStats', 'news']
gateway.on('worker', ({ state, pid }) => {
  const known: 'listening' | 'draining' | 'ended' = state
  console.log(known, pid satisfies number)
})
gateway.once('reloaded', outcome => outcome.toUpperCase())
// @ts-expect-error no such event
try { gateway.on('reload', () => {}) } catch {}
// @ts-expect-error no such option
await createGateway({ configuration: {} }).catch(() => {})

async function use(api: ApiClient | Gateway) {
  const { offset, epoch } = await api.publish('news', { text: 'hello' }, kept)
  console.log(offset satisfies number, epoch.length)
  await api.publish('news', new Uint8Array([1]), { skipHistory: true })
  const { publications } = await api.history('news', { limit: 10, since: { offset: 0, epoch } })
  console.log(publications[0]?.data.text, publications[0]?.tags?.['kind'])
  const { presence } = await api.presence('news')
  for (const [client, { user, connInfo }] of Object.entries(presence)) console.log(client, user, connInfo)
  const outcomes = await api.batch([
    ['publish', 'news', 1, { idempotencyKey: 'x' }],
    counted,
    ['disconnect', 'nobody', { code: 4000, reason: 'over', whitelist: [] }],
  ])
  for (const { error, result } of outcomes) console.log(error?.code ?? result)
  // @ts-expect-error the option has another name
  await api.publish('news', 1, { skip_history: true }).catch(() => {})
  // @ts-expect-error arguments of another method
  await api.batch([['presence']]).catch(() => {})
  const { responses } = await api.broadcast(['a', 'b'], null)
  for (const { result, error } of responses) console.log(error === undefined ? result.offset : error.message)
  await api.subscribe('u', 'news', { override: { presence: true }, expireAt: 3e9 })
  await api.refresh('u', { expired: true })
  const written: MapResult = await api.maps.publish('map:1', 'k', 1, { keyMode: 'if_new', version: 5n })
  console.log(written.suppressed satisfies boolean, written.current?.key)
  // @ts-expect-error no such key mode
  await api.maps.publish('map:1', 'k', 1, { keyMode: 'new' }).catch(() => {})
  const { entries, cursor } = await api.maps.readState('map:1', { limit: 10 })
  console.log(entries[0]?.data, cursor.length)
  await api.batch([['mapPublish', 'map:1', 'k', 1], ['mapStats', 'map:1']])
  const { nodes } = await api.info()
  console.log(nodes[0]?.version === version.version)
}
await use(gateway)
const client = new ApiClient({ url: gateway.url, key: 'dGVzdCBvZiB0aGUgdHlwZXMsIDMyIGJ5dGVz', timeout: 60_000 })
await use(client)
client.close()
await gateway.stop()
const late: unknown = await gateway.info().catch(error => error)
console.log(late instanceof ApiError && late.code === 0, new ConfigError([]) instanceof Error)
`,
  })
  const [embedded] = blocksOf('docs/install.md').filter(({ language }) => language === 'ts')
  const own = embedded.text.replace('port: 8000', `port: ${await freePort()}`)
  await writeFile(join(folder, 'embedded.ts'), `${own}await gateway.stop()\n`)
  const compiled = await run(t, process.execPath, [tsc, '-p', '.'], { cwd: folder })
  t.equal(compiled.output, '')
  t.equal(compiled.code, 0)
  const guide = await run(t, process.execPath, ['built/embedded.js'], { cwd: folder })
  t.match(guide.stdout, /^http:\S+ 1 \{ text: 'Grüße, José' \}$/m, 'the program of docs/install.md')
  t.equal(guide.code, 0, guide.output)
  const { code, output } = await run(t, process.execPath, ['built/program.js'], { cwd: folder })
  t.equal(code, 0, output)
  const lines = output.trim().split('\n')
  t.same(lines.slice(0, 2), ['1 8', 'hello a'])
  t.equal(lines.at(-1), 'true true')
  const common = await run(t, process.execPath, ['built/common.cjs'], { cwd: folder })
  t.equal(common.stdout, 'function function true\n', `CommonJS: ${common.output}`)

  const page = await run(t, process.execPath, [tsc, '-p', 'tsconfig.page.json'], { cwd: folder })
  t.equal(page.output, '', 'the types of the browser client, with a bundler')
  t.equal(page.code, 0)
}

/** The hooks of the chat compile, and run in a gateway of another copy of the package. @param {any} t */
export async function testChat(t) {
  const example = name => readFile(join(root, 'examples/chat-typescript', name), 'utf8')
  const folder = await installed(t, {
    'package.json': PACKAGE,
    'tsconfig.json': await example('tsconfig.json'),
    'hooks.ts': await example('hooks.ts'),
  })
  const compiled = await run(t, process.execPath, [tsc, '-p', '.'], { cwd: folder })
  t.equal(compiled.output, '')
  const { gateway } = await startExample(t, 'chat', { HOOKS: join(folder, 'dist/hooks.js') })
  const ws = `${gateway.replace('http', 'ws')}/connection/websocket`
  const guest = await RawClient.connected(ws, { data: { name: 'Ann' } })
  t.match((await guest.subscribe('room:private')).error, {
    code: 4030,
    message: 'this room needs an invitation',
  })
  const friend = await RawClient.connected(ws, { data: { name: 'Ben', invitation: 'please' } })
  t.match((await friend.subscribe('room:private')).subscribe, { data: { welcome: 'You are in private.' } })
  for (const { socket } of [guest, friend]) socket.terminate()
}
