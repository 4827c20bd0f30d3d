import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { writeWhole } from '../../fleet/files.js'
import { checkLimits, checkZeros, limitText, parseLimits } from '../../fleet/runner/limits.js'
import {
  accountingOf,
  accountingSum,
  isBalanced,
  losses,
  noAccounting,
  parseResult,
} from '../../fleet/runner/result.js'
import { stepText, verdictOf } from '../../fleet/runner/summary.js'
import { zeroCounters } from '../../fleet/statistics/counters.js'
import { latency, result, step } from './run-figures.js'

/** @param {Record<string, any>} flags @param {any} of */
const check = (flags, of) =>
  checkLimits(parseLimits(flags), of).map(
    checked => `${checked.broken ? 'violated' : 'met'} ${limitText(checked)}`,
  )

t.test('limits are parsed with units; other texts are refused', async t => {
  const values = parseLimits({
    'max-p99': '200ms',
    'max-mean': '1.5s',
    'max-max': '500us',
    'min-connections': '10,000',
    'max-bytes-per-connection': '4KB',
    'no-loss': true,
  })
  t.same(
    values.map(({ value }) => value),
    [200, 1500, 0.5, 10_000, 4096, 0],
  )
  for (const flags of [
    { 'max-p99': '200' },
    { 'max-p99': 'fast' },
    { 'max-mean': '-1ms' },
    { 'min-connections': 'many' },
    { 'max-bytes-per-connection': '4 cows' },
  ])
    t.throws(() => parseLimits(flags), { message: new RegExp(`^--${Object.keys(flags)[0]}: ".*" is `) })
})

t.test('a limit is checked at each step', async t => {
  const steps = [
    step({ name: 'few' }),
    step({ name: 'many', latency: latency([400, 400]), connections: { wanted: 5, open: 5, min: 4 } }),
  ]
  const run = result({ steps })
  t.same(check({ 'max-p99': '200ms' }, run), [
    'met --max-p99 200ms (few): 200 ms',
    'violated --max-p99 200ms (many): 400 ms',
  ])
  t.same(check({ 'max-mean': '1s', 'min-connections': '5' }, run).slice(2), [
    'met --min-connections 5 (few): 100',
    'violated --min-connections 5 (many): 4',
  ])
})

t.test('a limit without a measured value is violated', async t => {
  const idle = step({ latency: latency([]), publishRate: 0, accounting: { ...noAccounting(), pings: 5 } })
  t.match(check({ 'max-p99': '1s' }, result({ steps: [idle] })), [/^violated .* not measured/])
  t.match(
    check({ 'max-p99': '1s' }, result({ steps: [idle, step()] })),
    [/^met .*200/],
    'an idle step beside others',
  )
  t.match(check({ 'max-bytes-per-connection': '9KB' }, result()), [/^violated .* not measured/])
  t.match(check({ 'no-loss': true }, result({ steps: [idle], accounting: idle.accounting })), [/^met/])
  const silent = step({ accounting: noAccounting() })
  t.match(check({ 'no-loss': true }, result({ steps: [silent], accounting: silent.accounting })), [
    /^violated .*no subscriber expected any/,
  ])
})

t.test('--no-loss covers losses, duplicates, order and unexpected disconnects', async t => {
  const names = ['lost', 'unknown', 'duplicates', 'disordered', 'damaged', 'unrecovered', 'refused', 'ended']
  for (const name of names) {
    const accounting = { ...step().accounting, [name]: 2 }
    t.same(check({ 'no-loss': true }, result({ accounting })), [`violated --no-loss: 2 ${name}`])
  }
  const disturbed = step({ disturbances: [{ at: 1, text: 'cut' }], recover: true })
  const accounting = { ...step().accounting, ended: 5, refused: 1, reconnects: 5 }
  t.same(losses(accounting, [disturbed]), [], 'cut connections are expected')
  t.same(losses({ ...accounting, missed: 3 }, [disturbed]), [{ name: 'missed', count: 3 }])
  t.same(losses({ ...accounting, missed: 3 }, [{ ...disturbed, recover: false }]), [], 'no guarantee applies')
})

t.test('figures required to be 0 are limits', async t => {
  const steps = [
    step({ figures: { lost_rows: 0 } }),
    step({ name: 'last', figures: { lost_rows: 3, other: 1 } }),
  ]
  const checked = checkZeros(['lost_rows', 'none'], steps)
  t.same(checked.map(limitText), ['lost_rows 0 (100 connections): 0', 'lost_rows 0 (last): 3'])
  t.match(checked, [{ broken: false }, { broken: true }])
})

t.test('after history was destroyed, each subscription may be unrecovered once', async t => {
  const killed = step({
    disturbances: [{ at: 1, text: 'killed', left: false, forgotten: 100 }],
    recover: true,
  })
  const accounting = { ...step().accounting, ended: 100, reconnects: 100, unrecovered: 100, missed: 250 }
  t.same(losses(accounting, [killed]), [], 'messages published meanwhile are missed, not lost')
  t.same(losses({ ...accounting, unrecovered: 101 }, [killed]), [{ name: 'unrecovered', count: 1 }])
  t.same(
    losses({ ...accounting, lost: 1 }, [killed]),
    [{ name: 'lost', count: 1 }],
    'of the others nothing is lost',
  )
  const run = result({ steps: [killed], accounting })
  t.match(check({ 'no-loss': true }, run), [/^met/])
  t.match(verdictOf(run).lines.join(' '), /100 subscriptions were not recovered .*, and missed 250 messages/)
})

t.test('the accounting of a step covers only its own time', async t => {
  const before = { ...zeroCounters(), received: 10, lost: 3 }
  const now = { ...before, received: 30, lost: 2, published: 5 }
  const reconciliation = { expected: 20, lost: 4, unknown: 1 }
  const sums = accountingOf(now, before, reconciliation)
  t.match(sums, { received: 20, published: 5, expected: 20, lost: 4, unknown: 1 })
  t.match(accountingSum([sums, sums]), { received: 40, lost: 8 })
  const books = { ...noAccounting(), expected: 20, received: 17, duplicates: 1, lost: 1, missed: 3 }
  t.ok(isBalanced(books))
  t.notOk(isBalanced({ ...books, received: 10 }), 'the counters are older than the reconciliation')
})

t.test('steps and runs have texts for people', async t => {
  t.equal(
    stepText(step()),
    '100 connections: 100 open, 100/s received, mean 42 ms, p99 200 ms, max 200 ms, 4/s pings, nothing lost',
  )
  t.match(verdictOf(result()), {
    state: 'good',
    title: 'Nothing was lost',
    lines: [/^Subscribers expected 1,000 messages and received each once/],
  })
  const accounting = { ...step().accounting, lost: 7 }
  t.match(verdictOf(result({ accounting })), { state: 'bad', title: 'Losses found', lines: [/7 lost/] })
  t.match(verdictOf(result({ accounting: { ...step().accounting, unpublished: 500 } })), {
    title: 'Nothing was lost',
    lines: [/expected/, /^500 of 1,500 messages were not confirmed/],
  })
  t.match(verdictOf(result({ partial: true, notes: ['Why.'] })), { state: 'open', title: 'Incomplete' })
})

t.test('invalid results are refused', async t => {
  t.throws(() => parseResult('{'), /not valid JSON/)
  t.throws(() => parseResult('{}'), /not a run result/)
  t.throws(() => parseResult('{"type":"halley-fleet-run","schema":99}'), /schema 99/)
  t.match(parseResult(JSON.stringify(result())), { scenario: 'fan-100' })
})

t.test('a file is written completely or not at all', async t => {
  const dir = t.testdir()
  await writeWhole(join(dir, 'a'), 'text')
  await mkdir(join(dir, 'b'))
  await writeFile(join(dir, 'b', 'c'), '')
  await t.rejects(writeWhole(join(dir, 'b'), 'text'), /b: cannot be written: /)
  await t.rejects(writeWhole(join(dir, 'no', 'file'), 'text'), /cannot be written: no such folder/)
  t.same((await readdir(dir)).sort(), ['a', 'b'], 'no other file remains')
})
