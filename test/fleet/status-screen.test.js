import t from 'tap'
import { assertRestored, needsTmux } from '../kit/tmux.js'
import { open } from './status-terminal.js'

needsTmux(t)

t.test('80x24: shows everything, accepts keys, and q restores the terminal', async t => {
  const terminal = await open(t)
  const { tmux, messages, send } = terminal
  const screen = await tmux.until(/^ all .*100,000[\s\S]* q quit, load continues$/m)
  t.match(screen, /^ halley fleet {2}r-7f3a90 .*\n open .*\n rates .*\n checked .*lost 0 /)
  t.match(screen, /─ connections ─+ .*open 100,000 .*1\/4 ─/)
  t.match(screen, /q quit, load continues$/)
  await tmux.keys('Down')
  await tmux.until(/^▸d1 /m)
  await tmux.keys('j', 'Enter')
  await tmux.until(/─ drone d2 {2}up {2}local[\s\S]*wanted +33,333/)
  await tmux.keys('Escape')
  await tmux.until(/^▸d2 /m)
  await tmux.keys('c')
  await tmux.until(/─ latency of all, ms ─+/)
  await tmux.keys('t')
  await tmux.until('latency of the last 5 s')
  await tmux.keys('h')
  await tmux.until('quit; the load continues')
  await tmux.keys('h', 'e')
  await tmux.until('events, 2, newest first')
  await tmux.keys('e', 'f')
  await tmux.until(/─ faults of all drones ─+/)
  await tmux.keys('f', 's')
  await tmux.until('by state▲')
  await tmux.keys('p')
  await tmux.until(/paused at \d\d:\d\d:\d\d; press p to resume/)
  await tmux.keys('p', 'r')
  await tmux.until('restart d2?')
  await tmux.keys('n', 'r', 'y')
  await tmux.until('restarting d2')
  send({ answer: 1 })
  await tmux.until('restart of d2: done')
  await tmux.keys('n')
  await tmux.until('100,000 →')
  await tmux.type('20k')
  await tmux.keys('Enter')
  await tmux.until(/n 100,000 → 20,000/)
  send({ answer: 2, error: 'd1: too many' })
  await tmux.until('n 100,000 → 20,000: d1: too many')
  await tmux.keys('-')
  await tmux.until('n 100,000 → 90,000')
  t.same(
    messages.map(({ name, params }) => ({ name, params })),
    [
      { name: 'restart', params: { ids: ['d2'] } },
      { name: 'set', params: { n: 20_000 } },
      { name: 'set', params: { n: 90_000 } },
    ],
  )
  await tmux.keys('q')
  await assertRestored(t, terminal, /the view has ended\nexit 0/)
})
