import t from 'tap'
import { parse, value } from './exposition.js'

t.test('the tests read what the format allows', async t => {
  const text = [
    '# HELP a_total Things, \\\\ and \\n.',
    '# TYPE a_total counter',
    'a_total{x="1",y="q\\"\\\\\\n}"} 3',
    'a_total{x="2",y=""} 4e2',
    '',
    '# HELP h Times.',
    '# TYPE h histogram',
    'h_bucket{le="0.1"} 1',
    'h_bucket{le="+Inf"} 2',
    'h_sum 3.5',
    'h_count 2',
    '',
  ].join('\n')
  const families = parse(text)
  t.equal(families.get('a_total')?.help, 'Things, \\ and \n.')
  t.equal(value(families, 'a_total', { y: 'q"\\\n}' }), 3)
  t.equal(value(families, 'a_total'), 403)
  t.equal(value(families, 'h_sum'), 3.5)
  t.ok(Number.isNaN(value(families, 'b')))
})

t.test('the tests refuse what the format does not allow', async t => {
  const head = '# HELP a A.\n# TYPE a gauge\n'
  const histogram = '# HELP h H.\n# TYPE h histogram\n'
  for (const text of [
    'a 1\n',
    `${head}a 1`,
    `${head}`,
    `${head}a x\n`,
    `${head}a Nan\n`,
    `${head}a  1\n`,
    `${head}a 1\na 1\n`,
    `${head}b 1\n`,
    `${head}a{x=1} 1\n`,
    `${head}a{x="1" y="2"} 1\n`,
    `${head}a{x="1",x="1"} 1\n`,
    `${head}a{x-y="1"} 1\n`,
    `${head}a{x="\\t"} 1\n`,
    `${head}a 1\n${head}a{x="1"} 1\n`,
    '# TYPE a gauge\na 1\n',
    '# HELP a A.\n# TYPE a number\na 1\n',
    '# HELP a A.\n# TYPE a counter\na -1\n',
    `${histogram}h_bucket{le="1"} 1\nh_sum 1\nh_count 1\n`,
    `${histogram}h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n`,
    `${histogram}h_bucket{le="2"} 1\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n`,
    `${histogram}h_bucket{le="+Inf"} 1\nh_count 1\n`,
  ]) {
    t.throws(() => parse(text), text)
  }
})
