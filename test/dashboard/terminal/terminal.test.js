import t from 'tap'
import { needsTmux } from '../../kit/tmux.js'
import { guardOf, hasEnded, isLeft, start, stateOf } from './on-terminal.js'

needsTmux(t)

t.test('open switches the screen, draw shows lines, close restores the terminal', async t => {
  const program = await start(t)
  const { tmux, pid } = program
  t.strictSame(program.size, { columns: 80, rows: 24 })
  program.draw('first line', '', 'third line')
  t.ok(await tmux.until(screen => screen === 'first line\n\nthird line'))
  t.equal(await tmux.display('alternate_on'), '1')
  t.equal(await tmux.display('cursor_flag'), '0')
  t.match(await tmux.settings(), /-icanon.*-echo\b/s, 'raw')
  const guard = await guardOf(pid)
  t.ok(guard, 'a guard is running')
  program.send({ end: true })
  await isLeft(t, program)
  t.ok(await hasEnded(guard), 'the guard has exited')
  t.equal(stateOf(pid), '', 'the program exits')
})
