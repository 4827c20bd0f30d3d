import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { writeWhole } from '../../fleet/files.js'
import { checkLimits, limitText, parseLimits } from '../../fleet/runner/limits.js'
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
    checked => `${checked.broken ? 'broken' : 'holds'} ${limitText(checked)}`,
  )

t.test('limits are read with their units, and nothing else is taken', async t => {
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
    step({ name: 'many', latency: latency([400, 400]), connections: { wanted: 5, open: 5, least: 4 } }),
  ]
  const run = result({ steps })
  t.same(check({ 'max-p99': '200ms' }, run), [
    'holds --max-p99 200ms (few): 200 ms',
    'broken --max-p99 200ms (many): 400 ms',
  ])
  t.same(check({ 'max-mean': '1s', 'min-connections': '5' }, run).slice(2), [
    'holds --min-connections 5 (few): 100',
    'broken --min-connections 5 (many): 4',
  ])
})

t.test('what was not measured keeps no limit', async t => {
  const idle = step({ latency: latency([]), publishRate: 0, accounting: { ...noAccounting(), pings: 5 } })
  t.match(check({ 'max-p99': '1s' }, result({ steps: [idle] })), [/^broken .* not measured/])
  t.match(
    check({ 'max-p99': '1s' }, result({ steps: [idle, step()] })),
    [/^holds .*200/],
    'an idle step beside others',
  )
  t.match(check({ 'max-bytes-per-connection': '9KB' }, result()), [/^broken .* not measured/])
  t.match(check({ 'no-loss': true }, result({ steps: [idle], accounting: idle.accounting })), [/^holds/])
  const silent = step({ accounting: noAccounting() })
  t.match(check({ 'no-loss': true }, result({ steps: [silent], accounting: silent.accounting })), [
    /^broken .*none was due/,
  ])
})

t.test('no loss: what it covers', async t => {
  for (const name of [
    'lost',
    'unknown',
    'duplicates',
    'disordered',
    'damaged',
    'unrecovered',
    'refused',
    'ended',
  ]) {
    const accounting = { ...step().accounting, [name]: 2 }
    t.same(check({ 'no-loss': true }, result({ accounting })), [`broken --no-loss: 2 ${name}`])
  }
  const disturbed = step({ disturbances: [{ at: 1, text: 'cut' }], recover: true })
  const accounting = { ...step().accounting, ended: 5, refused: 1, reconnects: 5 }
  t.same(losses(accounting, [disturbed]), [], 'connections that were cut end')
  t.same(losses({ ...accounting, missed: 3 }, [disturbed]), [{ name: 'missed', count: 3 }])
  t.same(losses({ ...accounting, missed: 3 }, [{ ...disturbed, recover: false }]), [], 'nothing was promised')
})

t.test('a history that was destroyed is declared to each subscription once, and no more', async t => {
  const killed = step({
    disturbances: [{ at: 1, text: 'killed', left: false, forgotten: 100 }],
    recover: true,
  })
  const accounting = { ...step().accounting, ended: 100, reconnects: 100, unrecovered: 100, missed: 250 }
  t.same(losses(accounting, [killed]), [], 'what passed meanwhile was declared')
  t.same(losses({ ...accounting, unrecovered: 101 }, [killed]), [{ name: 'unrecovered', count: 1 }])
  t.same(
    losses({ ...accounting, lost: 1 }, [killed]),
    [{ name: 'lost', count: 1 }],
    'of the others nothing is lost',
  )
  const run = result({ steps: [killed], accounting })
  t.match(check({ 'no-loss': true }, run), [/^holds/])
  t.match(
    verdictOf(run).lines.join(' '),
    /100 subscriptions were told so .*, and 250 messages passed meanwhile/,
  )
})

t.test('the books of a step are those of its own time', async t => {
  const before = { ...zeroCounters(), received: 10, lost: 3 }
  const now = { ...before, received: 30, lost: 2, published: 5 }
  const reckoning = { expected: 20, lost: 4, unknown: 1 }
  const sums = accountingOf(now, before, reckoning)
  t.match(sums, { received: 20, published: 5, expected: 20, lost: 4, unknown: 1 })
  t.match(accountingSum([sums, sums]), { received: 40, lost: 8 })
  const books = { ...noAccounting(), expected: 20, received: 17, duplicates: 1, lost: 1, missed: 3 }
  t.ok(isBalanced(books))
  t.notOk(isBalanced({ ...books, received: 10 }), 'the counters are older than the reckoning')
})

t.test('a run in a few words', async t => {
  t.equal(
    stepText(step()),
    '100 connections: 100 open, 100/s received, mean 42 ms, p99 200 ms, max 200 ms, 4/s pings, nothing lost',
  )
  t.match(verdictOf(result()), {
    state: 'good',
    title: 'Nothing was lost',
    lines: [/^1,000 messages were due .* each came once/],
  })
  const accounting = { ...step().accounting, lost: 7 }
  t.match(verdictOf(result({ accounting })), {
    state: 'bad',
    title: 'Not everything arrived',
    lines: [/7 lost/],
  })
  t.match(verdictOf(result({ accounting: { ...step().accounting, unpublished: 500 } })), {
    title: 'Nothing was lost',
    lines: [/due/, /^500 of 1,500 messages that were to be published were not confirmed/],
  })
  t.match(verdictOf(result({ partial: true, notes: ['Why.'] })), { state: 'open', title: 'Not to its end' })
})

t.test('a result that is none is not taken for one', async t => {
  t.throws(() => parseResult('{'), /not valid JSON/)
  t.throws(() => parseResult('{}'), /not the result of a run/)
  t.throws(() => parseResult('{"type":"halley-fleet-run","schema":99}'), /schema 99/)
  t.match(parseResult(JSON.stringify(result())), { scenario: 'fan-100' })
})

t.test('a file is written as a whole, or not at all', async t => {
  const dir = t.testdir()
  await writeWhole(join(dir, 'a'), 'text')
  await mkdir(join(dir, 'b'))
  await writeFile(join(dir, 'b', 'c'), '')
  await t.rejects(writeWhole(join(dir, 'b'), 'text'), /b: cannot be written: /)
  await t.rejects(writeWhole(join(dir, 'no', 'file'), 'text'), /cannot be written: there is no such folder/)
  t.same((await readdir(dir)).sort(), ['a', 'b'], 'and nothing beside it')
})

t.test('a full disk: one line, and what was there stays as it was', async t => {
  const dir = await mkdtemp(join(tmpdir(), 'halley-full-'))
  let mounted = false
  t.teardown(async () => {
    if (mounted) execFileSync('umount', [dir])
    await rm(dir, { recursive: true })
  })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', dir], { stdio: 'ignore' })
    mounted = true
  } catch {
    return t.pass('not run', { skip: 'only who may mount has a disk that is full' })
  }
  const file = join(dir, 'report.html')
  await writeWhole(file, 'old')
  await t.rejects(writeWhole(file, 'x'.repeat(1e6)), {
    message: `${file}: cannot be written: the disk is full`,
  })
  t.same(await readdir(dir), ['report.html'])
  t.equal(await readFile(file, 'utf8'), 'old')
})
