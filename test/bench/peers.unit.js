import t from 'tap'
import { markdown, replaceTable } from '../../bench/peers/markdown.js'
import { parseOptions } from '../../bench/peers.js'

const columns = [
  {
    name: 'Halley',
    results: {
      memory: { bytes_per_connection: 1234, connect_cpu_us: 45.6, failed: 0 },
      fan: { cpu_us_per_message: 2.5, p99_ms: 12.34, missing: 0 },
    },
  },
  {
    name: 'Other 1.2',
    results: { memory: {}, fan: { cpu_us_per_message: 5, p99_ms: 7, missing: 3, order_faults: 1 } },
  },
]

t.test('peers: a table in Markdown, with the faults and the command', async t => {
  t.equal(
    markdown(columns, '`npm run bench -- peers`, medians of 3 runs.'),
    `|  | Halley | Other 1.2 |
| --- | ---: | ---: |
| bytes of user space for an idle connection | 1,234 | - |
| processor time of a connect, µs | 46 | - |
| processor time of a delivered message, µs | 2.50 | 5.00 |
| latency of 99 of 100 messages, at most, ms | 12.3 | 7.0 |

Faults:

- Other 1.2, fan: 3 missing, 1 order_faults

\`npm run bench -- peers\`, medians of 3 runs.
`,
  )
})

t.test('peers: the table replaces the one between its signs', async t => {
  const text = 'before\n<!-- peers -->\n\nold\n\n<!-- /peers -->\nafter\n'
  const replaced = 'before\n<!-- peers -->\n\n| new |\n\n<!-- /peers -->\nafter\n'
  t.equal(replaceTable(text, '| new |\n', 'README.md'), replaced)
  t.equal(replaceTable(replaced, '| new |\n', 'README.md'), replaced)
  t.throws(() => replaceTable('nothing', '', 'README.md'), {
    message: /^README\.md has no lines <!-- peers -->/,
  })
})

t.test('peers: a wrong command line is refused', async t => {
  t.equal(parseOptions(['--help']), null)
  t.match(parseOptions(['--peers=ws,socket.io', '--loads', 'fan', '--runs', '1']), {
    peers: ['socket.io', 'ws'],
    loads: ['fan'],
    runs: 1,
    conns: 5000,
  })
  /** @type {[string[], RegExp][]} */
  const cases = [
    [['--peers=apache'], /--peers is a list of socket\.io, uws, ws, nchan, centrifuge, not "apache"/],
    [['--loads='], /--loads is a list of memory, fan, flat, not ""/],
    [['--conns=few'], /--conns is a whole number from 1/],
    [['--write=/no/such/file'], /--write: ENOENT/],
    [['--write=x', '--json'], /exclude each other/],
    [['more'], /Unexpected argument 'more'/],
  ]
  for (const [args, message] of cases) t.throws(() => parseOptions(args), { message })
})
