// Valid exports of a hooks module, and the errors for others.

import { join } from 'node:path'
import t from 'tap'
import { combine } from '../../../src/backends/hooks/combine.js'
import { loadHooks, NO_MODULE } from '../../../src/backends/hooks/module.js'
import { NO_HANDLERS } from '../../../src/clients/hooks/contract.js'
import { HookStats } from '../../../src/metrics/hook-stats.js'

/** Loads a module from files of the test. */
const load = (folder, file) =>
  loadHooks({ module: file && join(folder, file), timeout: 1000 }, { error() {} }, new HookStats())
const NO_OPTIONS = /** @type {any} */ ({})

t.test('rejects an invalid module with one line that names file and cause', async t => {
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
    ['misspelt.js', /exports sub_refresh; the handler is named subRefresh$/],
    ['empty.js', /exports no handler; known handlers: connect, refresh/],
    ['wrong.js', /exports publish, which must be a function$/],
    ['method.js', /exports rpc: "chat\.rename" is not a function$/],
    ['headers.js', /exports headers, which must be a list of header names$/],
    ['string.js', /does not load: no$/],
    ['missing-import.js', /does not load: Error: Cannot find module .*nowhere\.js/],
  ])) {
    const refused = load(folder, file)
    await t.rejects(refused, { message: said }, file)
    await t.rejects(refused, { message: /^hooks\.module: [^\n]*$/ }, `${file}: one line`)
  }
})

t.test('missing handlers are not called, other exports are ignored', async t => {
  const folder = t.testdir({
    'hooks.js': 'export const helper = 1; export const publish = () => {}; export const headers = ["Cookie"]',
    'default.js': 'export default { rpc: { a: () => 1 } }',
    'started.js': 'export const started = () => { throw new Error("no database") }',
  })
  const { handlers } = await load(folder, 'hooks.js')
  t.match(handlers, { connect: null, refresh: null, rpc: null, disconnected: [], headers: ['cookie'] })
  t.match(handlers.channel('', NO_OPTIONS), {
    subscribe: null,
    subRefresh: null,
    publish: { name: 'publish hook' },
  })
  const { handlers: other } = await load(folder, 'default.js')
  t.ok(other.rpc?.('a'))
  t.equal(other.rpc?.('b'), null)
  const { started } = await load(folder, 'started.js')
  await t.rejects(started({}), { message: /started\(\) of .*started\.js failed: Error: no database/ })
  t.equal(await load('', ''), NO_MODULE)
})

t.test('only a module with connect is called for connections with a token', async t => {
  const folder = t.testdir({
    'without.js': 'export const publish = () => {}',
    'with.js': 'export const connect = () => {}',
  })
  for (const [file, expected] of /** @type {[string, boolean][]} */ ([
    ['without.js', false],
    ['with.js', true],
  ])) {
    const { handlers } = await load(folder, file)
    t.equal(handlers.connectWithToken, expected, file)
    const proxy = { name: 'proxy', timeout: 1, call: () => null }
    const both = combine(handlers, { ...NO_HANDLERS, connect: proxy })
    t.equal(both.connectWithToken, expected, `${file}, beside a proxy`)
  }
})

t.test('a proxy does not renew what a refresh hook has expired', async t => {
  const folder = t.testdir({
    'hooks.js': 'export const refresh = () => ({ expired: true }); export const subRefresh = refresh',
  })
  const { handlers } = await load(folder, 'hooks.js')
  const prolongs = { name: 'proxy', timeout: 1, call: () => ({ expireAt: 9_999_999_999 }) }
  const channel = () => ({ ...NO_HANDLERS.channel('', NO_OPTIONS), subRefresh: prolongs })
  const both = combine(handlers, { ...NO_HANDLERS, refresh: prolongs, channel })
  const event = /** @type {any} */ ({})
  t.same(both.refresh?.call(event), { expireAt: 1 }, 'a time in the past')
  t.same(both.channel('', NO_OPTIONS).subRefresh?.call(event), { expireAt: 1 })
})

t.test('awaits thenables that are not promises', async t => {
  const folder = t.testdir({
    'hooks.js': 'export const publish = () => ({ then(resolve) { setImmediate(resolve, { data: 1 }) } })',
  })
  const { handlers } = await load(folder, 'hooks.js')
  const answer = handlers.channel('', NO_OPTIONS).publish?.call(NO_OPTIONS)
  t.type(answer, Promise)
  t.match(await answer, { data: { data: '1' } })
})
