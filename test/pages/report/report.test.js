import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CSV_HEADER } from '../../../src/metrics/csv-columns.js'
import { parseCsv } from '../../../src/metrics/csv-reader.js'
import { bundleModules, inlineJson } from '../../../src/pages/report/inline.js'
import { renderPage } from '../../../src/pages/report/page.js'
import { makeRun } from '../../../src/pages/report/run.js'
import { halley, spawnHalley } from '../../kit/cli.js'
import { csvText } from './rows.js'

/** `halley report` in this process. @param {string[]} args @param {string} cwd */
async function report(args, cwd) {
  const before = process.cwd()
  process.chdir(cwd)
  try {
    return await halley(['report', ...args], { cwd })
  } finally {
    process.chdir(before)
  }
}

/** Without the lines about its progress on a slow machine. @template {{err: string}} T @param {T} result */
const withoutProgress = result => ({
  ...result,
  err: result.err.replace(/^(?:\S+: \d+ % read|writing the page)\n/gm, ''),
})

const dataOf = page => {
  const found = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)
  return JSON.parse(/** @type {RegExpExecArray} */ (found)[1])
}

t.test('a page shows one file or several', async t => {
  const dir = t.testdir({
    'a.csv': csvText(),
    'b.csv': csvText({ connections: 5000, start: Date.UTC(2026, 2, 1) }),
  })
  t.match(withoutProgress(await spawnHalley(['report', 'a.csv', '-o', 'a.html'], { cwd: dir })), {
    code: 0,
    out: /^a\.html: \d+ KB\n$/,
    err: '',
  })
  const one = readFileSync(join(dir, 'a.html'), 'utf8')
  t.match(one, '<title>a</title>')
  t.match(one, 'Halley 0.1.0')
  t.match(one, '16 GB of memory')
  t.match(one, '5 January 2026')
  t.same(dataOf(one)[0].columns.connections.length, 120)

  const args = [...'a.csv b.csv --output ab.html --label Before --label <b> --title'.split(' '), 'A & B']
  // A slow machine shows its progress.
  t.match(await report(args, dir), { code: 0, err: /^(?:b\.csv: \d+ % read\n)*(?:writing the page\n)?$/ })
  const two = readFileSync(join(dir, 'ab.html'), 'utf8')
  t.match(two, '<title>A &#38; B</title>')
  t.match(two, '5 January 2026, 1 March 2026')
  t.notMatch(two, '<b></th>', 'a label is no markup')
  t.same(
    dataOf(two).map(run => run.label),
    ['Before', '<b>'],
  )
})

t.test('an unreadable file is a one-line error with exit code 1, and no page remains', async t => {
  const dir = t.testdir({
    'empty.csv': '',
    'header.csv': CSV_HEADER,
    'foreign.csv': 'name,age\nAnn,5\n',
    'binary.csv': Buffer.from([0x7f, 0x45, 0x4c, 0x46, 10, 1, 2, 10]),
    'good.csv': csvText({ seconds: 20 }),
  })
  mkdirSync(join(dir, 'folder'))
  for (const [file, error] of [
    ['none.csv', 'none.csv: no such file'],
    ['empty.csv', 'empty.csv: the file is empty'],
    ['header.csv', 'header.csv: no rows yet'],
    ['foreign.csv', 'foreign.csv: not a Halley CSV file: columns time, connections missing'],
    ['binary.csv', 'binary.csv: not a Halley CSV file: no header line'],
    ['folder', 'folder: is a folder, not a CSV file'],
  ]) {
    t.same(withoutProgress(await report(['good.csv', file, '-o', 'x.html'], dir)), {
      code: 1,
      out: '',
      err: `halley: ${error}\n`,
    })
  }
  t.same(withoutProgress(await report(['good.csv', '-o', 'nowhere/x.html'], dir)), {
    code: 1,
    out: '',
    err: 'halley: nowhere/x.html: cannot be written: ENOENT\n',
  })
  t.notOk(readdirSync(dir).some(name => name.includes('html')))
})

t.test('without a name, the page is written beside the CSV file and only replaces a report', async t => {
  const text = csvText({ seconds: 20 })
  const dir = t.testdir({ 'a.csv': text, sub: { 'b.csv': text, 'c.csv': text, 'c.html': '<p>mine</p>' } })
  for (let i = 0; i < 2; i++)
    t.match(withoutProgress(await report(['a.csv'], dir)), { code: 0, out: /^a\.html: / })
  t.match(readFileSync(join(dir, 'a.html'), 'utf8'), '<title>a</title>')
  t.match(withoutProgress(await report(['sub/b.csv', 'a.csv'], dir)), { code: 0, out: /^sub\/b\.html: / })
  t.same(await report(['sub/c.csv'], dir), {
    code: 1,
    out: '',
    err: 'halley: sub/c.html: already exists and is not a report; use -o to set the output file\n',
  })
  t.equal(readFileSync(join(dir, 'sub/c.html'), 'utf8'), '<p>mine</p>')
  t.match(withoutProgress(await report(['sub/c.csv', '-o', 'sub/c.html'], dir)), {
    code: 0,
    out: /^sub\/c\.html: /,
  })
})

t.test('a CSV file is never overwritten by its page', async t => {
  const text = csvText({ seconds: 20 })
  const dir = t.testdir({ 'a.csv': text, 'b.csv': text, 'link.csv': t.fixture('symlink', 'b.csv') })
  for (const out of ['b.csv', './b.csv', 'link.csv']) {
    t.same(withoutProgress(await report(['a.csv', 'b.csv', '-o', out], dir)), {
      code: 1,
      out: '',
      err: `halley: ${out}: the report would overwrite the CSV file\n`,
    })
  }
  t.equal(readFileSync(join(dir, 'b.csv'), 'utf8'), text)
})

t.test('an invalid command line has exit code 2', async t => {
  const dir = t.testdir({ 'a.csv': csvText({ seconds: 20 }) })
  for (const [line, pattern] of /** @type {[string, RegExp][]} */ ([
    ['-o x.html', /report: no CSV file given/],
    ['a.csv -o', /-o requires a value/],
    ['a.csv -o x.html --label A --label B', /2 labels given for 1 files/],
    ['a.csv -o x.html --tilte T', /did you mean --title/],
  ])) {
    const { code, err } = await report(line.split(' '), dir)
    t.equal(code, 2, line)
    t.match(err, pattern)
  }
})

t.test('the page loads nothing, and its policy allows nothing', async t => {
  const { columns, facts } = await parseCsv([csvText()])
  const page = renderPage({
    title: 'x',
    runs: [makeRun({ label: 'x', columns, facts })],
    version: '1.2.3',
    tables: [
      {
        title: 'More',
        note: 'Said <here>',
        columns: ['p99'],
        groups: [{ title: '', rows: [{ label: 'a', cells: ['1'] }] }],
      },
    ],
  })
  const markup = page.replace(/<(script|style)[^>]*>.*?<\/\1>/gs, '')
  t.notMatch(markup, /\b(?:src|href)="(?!data:,")/)
  t.notMatch(page, /<link(?! rel="icon" href="data:,")/)
  t.notMatch(page.replace(/<script.*?<\/script>/gs, ''), /@import|url\(/)
  t.match(markup, 'Said &#60;here&#62;')
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1] ?? ''
  t.match(policy, "default-src 'none'")
  t.notMatch(policy, 'unsafe')
  const hash = text => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  const scripts = [...page.matchAll(/<script>(.*?)<\/script>/gs)].map(([, text]) => text)
  t.equal(scripts.length, 3)
  for (const script of scripts) t.ok(policy.includes(hash(script)))
  t.ok(policy.includes(hash(/<style>(.*?)<\/style>/s.exec(page)?.[1] ?? '')))
})

t.test('data cannot close its script element', async t => {
  const { columns } = await parseCsv([csvText({ seconds: 20 })])
  const label = '</script><script>alert(1)</script><!--\u2028'
  const run = makeRun({ label, columns, facts: [{ facts: { name: '<img src=x>' } }] })
  const page = renderPage({ title: label, runs: [run], version: '1' })
  t.equal([...page.matchAll(/<\/script>/g)].length, 4)
  t.notMatch(page, '<img')
  t.equal(dataOf(page)[0].label, label)
  t.equal(JSON.parse(inlineJson(label)), label)
})

t.test('a module that cannot be embedded is refused', async t => {
  const dir = t.testdir({
    'a.js': "import { b as c } from './b.js'\nglobalThis.result = c + 1\n",
    'b.js': 'export const b = 1\n',
    'odd.js': "import * as all from './b.js'\nall.b\n",
  })
  const url = name => new URL(`file://${join(dir, name)}`)
  const scope = /** @type {any} */ (globalThis)
  new Function(bundleModules(url('a.js')))()
  t.equal(scope.result, 2)
  delete scope.result
  t.throws(() => bundleModules(url('odd.js')), { message: /cannot be bundled: import \*/ })
})
