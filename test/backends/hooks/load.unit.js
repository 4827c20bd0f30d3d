// What a hooks module may export, and what is said of a wrong one.

import { join } from 'node:path'
import t from 'tap'
import { combine } from '../../../src/backends/hooks/combine.js'
import { loadHooks, NO_MODULE } from '../../../src/backends/hooks/module.js'
import { NO_HANDLERS } from '../../../src/clients/hooks/contract.js'
import { HookStats } from '../../../src/metrics/hook-stats.js'

const log = { error() {} }

t.test('a wrong module is refused with one line that names file and fault', async t => {
  const folder = t.testdir({
    'throws.js': 'null.x',
    'syntax.js': 'export function connect( {',
    'misspelt.js': 'export const sub_refresh = () => {}',
    'empty.js': 'export const helper = 1',
    'wrong.js': 'export const publish = 5',
    'method.js': 'export const rpc = { "chat.rename": 1 }',
    'headers.js': 'export const headers = "cookie"; export const connect = () => {}',
    'string.js': 'throw "no"',
    'missing-import.js': 'import "./nowhere.js"',
  })
  for (const [file, said] of /** @type {[string, RegExp][]} */ ([
    ['throws.js', /throws\.js does not load: TypeError: .*\(file:.*throws\.js:1:6\)$/],
    ['syntax.js', /syntax\.js does not load: SyntaxError: /],
    ['misspelt.js', /exports sub_refresh; the handler is called subRefresh$/],
    ['empty.js', /exports no handler; known ones: connect, refresh/],
    ['wrong.js', /exports publish, which must be a function$/],
    ['method.js', /exports rpc, whose "chat\.rename" is no function$/],
    ['headers.js', /exports headers, which must be a list of header names$/],
    ['string.js', /does not load: no$/],
    ['missing-import.js', /does not load: Error: Cannot find module .*nowhere\.js/],
  ])) {
    const refused = loadHooks({ module: join(folder, file), timeout: 1000 }, log, new HookStats())
    await t.rejects(refused, { message: said }, file)
    await t.rejects(refused, { message: /^hooks\.module: [^\n]*$/ }, `${file}: one line`)
  }
})

t.test('what a module does not export is not asked; helpers beside the handlers are no fault', async t => {
  const folder = t.testdir({
    'hooks.js': 'export const helper = 1; export const publish = () => {}; export const headers = ["Cookie"]',
    'default.js': 'export default { rpc: { a: () => 1 } }',
    'started.js': 'export const started = () => { throw new Error("no database") }',
  })
  const { handlers } = await loadHooks(
    { module: join(folder, 'hooks.js'), timeout: 1000 },
    log,
    new HookStats(),
  )
  t.match(handlers, { connect: null, refresh: null, rpc: null, disconnected: [], headers: ['cookie'] })
  t.match(handlers.channel('', /** @type {any} */ ({})), {
    subscribe: null,
    subRefresh: null,
    publish: { name: 'publish hook' },
  })
  const { handlers: other } = await loadHooks(
    { module: join(folder, 'default.js'), timeout: 1000 },
    log,
    new HookStats(),
  )
  t.ok(other.rpc?.('a'))
  t.equal(other.rpc?.('b'), null)
  const { started } = await loadHooks(
    { module: join(folder, 'started.js'), timeout: 1000 },
    log,
    new HookStats(),
  )
  await t.rejects(started({}), { message: /started\(\) of .*started\.js failed: Error: no database/ })
  t.equal(await loadHooks({ module: '', timeout: 1000 }, log, new HookStats()), NO_MODULE)
})

t.test('a module without connect has no say in the connects of tokens', async t => {
  const folder = t.testdir({
    'without.js': 'export const publish = () => {}',
    'with.js': 'export const connect = () => {}',
  })
  for (const [file, asked] of /** @type {[string, boolean][]} */ ([
    ['without.js', false],
    ['with.js', true],
  ])) {
    const { handlers } = await loadHooks({ module: join(folder, file), timeout: 1000 }, log, new HookStats())
    t.equal(handlers.connectWithToken, asked, file)
    const proxy = { name: 'proxy', timeout: 1, call: () => null }
    const both = combine(handlers, { ...NO_HANDLERS, connect: proxy })
    t.equal(both.connectWithToken, asked, `${file}, beside a proxy`)
  }
})

t.test('what a refresh hook ends, no proxy prolongs', async t => {
  const folder = t.testdir({
    'hooks.js': 'export const refresh = () => ({ expired: true }); export const subRefresh = refresh',
  })
  const { handlers } = await loadHooks(
    { module: join(folder, 'hooks.js'), timeout: 1000 },
    log,
    new HookStats(),
  )
  const prolongs = { name: 'proxy', timeout: 1, call: () => ({ expireAt: 9_999_999_999 }) }
  const channel = () => ({ subscribe: null, publish: null, subRefresh: prolongs })
  const both = combine(handlers, { ...NO_HANDLERS, refresh: prolongs, channel })
  const event = /** @type {any} */ ({})
  t.same(both.refresh?.call(event), { expireAt: 1 }, 'a moment in the past')
  t.same(both.channel('', /** @type {any} */ ({})).subRefresh?.call(event), { expireAt: 1 })
})

t.test('a thenable that is no promise is waited for, too', async t => {
  const folder = t.testdir({
    'hooks.js': 'export const publish = () => ({ then(resolve) { setImmediate(resolve, { data: 1 }) } })',
  })
  const { handlers } = await loadHooks(
    { module: join(folder, 'hooks.js'), timeout: 1000 },
    log,
    new HookStats(),
  )
  const answer = handlers.channel('', /** @type {any} */ ({})).publish?.call(/** @type {any} */ ({}))
  t.type(answer, Promise)
  t.match(await answer, { data: { data: '1' } })
})
