// The program on a terminal; see also screen.slow.js.

import t from 'tap'
import { EXIT_CODES } from '../../src/base/dashboard-exit.js'
import { assertRestored, needsTmux } from '../kit/tmux.js'
import { mock, open } from './support.js'

needsTmux(t)

t.test('80x24: shows everything, updates the figures, and q restores the terminal', async t => {
  const gateway = await mock(t)
  const terminal = await open(t, gateway.path)
  const { tmux } = terminal
  const screen = await tmux.until(/^ all .*20,000[\s\S]*─ connections ─+ 20,000[\s\S]* q quit$/m)
  t.match(screen, /cpu {2}█+░+ .*\n mem .*\n net .*\n capacity .*\n─ workers 2 ─/)
  t.match(screen, /─ connections ─+ 20,000 {2}1\/6 ─/)
  t.match(screen, /halley\.csv/)
  t.match(screen, /q quit$/)
  const last = /** @type {any} */ (gateway.snapshots.at(-1))
  const { totals } = last
  gateway.send({
    ...last,
    time: last.time + 1000,
    totals: { ...totals, connections: { ...totals.connections, connected: 31_415 } },
  })
  await tmux.until(/─ connections ─+ 31,415 /)
  await tmux.resize(120, 40)
  await tmux.until(/─ connections .*─ messages[\s\S]*q quit$/)
  await tmux.resize(80, 24)
  await tmux.keys('q')
  await assertRestored(t, terminal, `exit ${EXIT_CODES.quit}`)
})
