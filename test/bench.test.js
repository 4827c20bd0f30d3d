import t from 'tap'
import { compareBooks } from '../bench/books.js'
import { HELP, parseOptions } from '../bench/options.js'
import { parseRestartOptions } from '../bench/restarts.js'
import { run, script } from './bench-runs.js'

t.test('a wrong command line is refused with one clear line', async t => {
  /** @type {[string, RegExp][]} */
  const cases = [
    ['fam', /no scenario "fam"; there are memory, fan, one2one, big, poll/],
    ['fan --conns=many', /--conns is a whole number from 1, not "many"/],
    ['fan --size=10', /--size is a whole number from 64/],
    ['fan --server=nginx', /a server is one of halley, uws, ws, embedded, not "nginx"/],
    ['fan --nodes=2', /--nodes and --redis want --engine redis/],
    ['channels --against=uws', /channels is for Halley only, not for uws/],
    ['fan --speed=9', /Unknown option '--speed'/],
  ]
  for (const [args, message] of cases) t.throws(() => parseOptions(args.split(' ')), { message })
  t.throws(() => parseRestartOptions(['--kill=all']), { message: /--kill is redis or node, not "all"/ })
  await t.rejects(run(process.execPath, [script, 'fam']), { code: 2, stderr: /^bench: no scenario "fam"/ })
})

t.test('--help names every scenario', async t => {
  t.equal(parseOptions(['--help']), null)
  t.match(HELP, /memory .*\n.*fan .*\n.*one2one .*\n.*big .*\n.*poll .*\n.*latency .*\n.*channels /)
})

t.test('the books tell of what is missing, repeated and out of order', async t => {
  const positions = Object.entries({ 'e:1': 'a', 'e:2': 'b', 'e:3': 'c' })
  const load = {
    acks: 3,
    acknowledged: new Map([['c', new Map(positions)]]),
    errors: new Map([[100, 2]]),
    unanswered: 1,
    faults: [],
  }
  const got = new Map(Object.entries({ 'e:1': 'a', 'e:2': 'x', 'e:4': 'd' }))
  const client = {
    faults: ['c: 1 (a) after 2 of e', 'c: a twice', 'c: error 108'],
    returns: 1,
    tracks: new Map([['c', { channel: 'c', got, told: 0 }]]),
  }
  const books = compareBooks(/** @type {any} */ (load), [/** @type {any} */ (client)])
  t.match(books.figures, {
    acknowledged: 3,
    refused: 2,
    expected: 3,
    delivered: 1,
    delivered_unacknowledged: 2,
    missing: 1,
    repeated: 1,
    out_of_order: 1,
    other_faults: 2,
  })
  t.equal(books.said, 6)
  t.equal(books.faults.length, 5)
})
