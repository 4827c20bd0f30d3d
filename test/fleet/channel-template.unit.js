import t from 'tap'
import { channelNumber, parseTemplate } from '../../fleet/channel-template.js'

const names = (template, count) => {
  const subject = parseTemplate(template)
  return Array.from({ length: count }, (_, i) => subject.at(i))
}

t.test('a template gives the channel of each connection', async t => {
  for (const [template, expected] of [
    ['s{1..3}', 's1 s2 s3 s1 s2'],
    ['ns:x{7..8}.y', 'ns:x7.y ns:x8.y ns:x7.y'],
    ['own:{own}', 'own:1 own:2 own:3'],
    ['g:{group 2}', 'g:1 g:1 g:2 g:2 g:3'],
    ['news', 'news news'],
  ])
    t.equal(names(template, expected.split(' ').length).join(' '), expected, template)
  t.same(names('r{random 1..100}', 1000), names('r{random 1..100}', 1000), 'the same each time')
  t.equal(parseTemplate('s{5..9}').at(6), 's6')
  t.equal(parseTemplate('s{1..1200000}').at(12_000_000 - 1), 's1200000')
})

t.test('random channels are spread evenly, and independently for two templates', async t => {
  const subject = parseTemplate('r{random 1..100}')
  const other = parseTemplate('q{random 1..100}')
  const total = 100_000
  const counts = new Array(100).fill(0)
  for (let i = 0; i < total; i++) counts[subject.indexOf(subject.at(i))]++
  const squares = counts.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0)
  t.ok(squares > 50 && squares < 170, `chi-squared of 99 degrees of freedom: ${squares}`)
  let same = 0
  for (let i = 0; i < total; i++) if (subject.at(i).slice(1) === other.at(i).slice(1)) same++
  t.ok(same > 700 && same < 1300, `${same} are the same`)
})

for (const template of [
  's{1..30}',
  's{0..2}',
  'r{random 1..20}',
  'own:{own}',
  'g:{group 10}',
  'news',
  '1{2..3}4',
])
  t.test(`${template}: the channels to publish to are those of the connections`, async t => {
    const subject = parseTemplate(template)
    for (const total of [0, 1, 25, 95]) {
      const taken = new Set(Array.from({ length: total }, (_, i) => subject.at(i)))
      const named = new Set()
      for (let index = 0; index < subject.count(total); index++) {
        const name = subject.nameOf(index)
        t.equal(subject.indexOf(name), index, name)
        named.add(name)
      }
      t.equal(named.size, subject.count(total))
      for (const name of taken) t.ok(named.has(name), name)
      if (!template.includes('random')) t.equal(taken.size, named.size)
    }
    for (const name of ['', 'x', 's', 's031', 's31', 's-1', 'g:', 'own:1.5', 'r21', '1254']) {
      const index = subject.indexOf(name)
      t.ok(index === -1 || subject.nameOf(index) === name, name)
    }
  })

t.test('an invalid template is a one-line error', async t => {
  for (const template of ' s{ s{} s{1..} s{2..1} s{1..2}{3..4} s{group} g{group|0} s{one} a} s{0..9999999999}'.split(
    ' ',
  ))
    t.throws(() => parseTemplate(template.replace('|', ' ')), { message: /^[^\n]+$/ }, template)
})

t.test('random channel numbers are FNV-1a hashes', async t => {
  t.equal(channelNumber(''), 0x811c9dc5)
  t.equal(channelNumber('a'), 0xe40c292c)
  t.equal(channelNumber('foobar'), 0xbf9cf968)
})
