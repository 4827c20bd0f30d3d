import t from 'tap'
import { eventually, needsTmux } from '../../kit/tmux.js'
import { childrenOf, isLeft, start, stateOf } from './on-terminal.js'

needsTmux(t)

t.test('it takes the screen, shows lines, and gives everything back at its end', async t => {
  const program = await start(t)
  const { tmux, pid } = program
  t.strictSame(program.size, { columns: 80, rows: 24 })
  program.draw('first line', '', 'third line')
  t.ok(await tmux.until(screen => screen === 'first line\n\nthird line'))
  t.equal(await tmux.display('alternate_on'), '1')
  t.equal(await tmux.display('cursor_flag'), '0')
  t.match(await tmux.settings(), /-icanon.*-echo\b/s, 'raw')
  const [guard] = await eventually(
    () => childrenOf(pid),
    found => found.length === 1,
  )
  t.ok(guard, 'a guard is there')
  program.tell({ end: true })
  await isLeft(t, program)
  t.equal(
    await eventually(
      () => stateOf(guard),
      state => state === '',
    ),
    '',
    'the guard has gone',
  )
  t.equal(stateOf(pid), '', 'nothing keeps the program')
})

t.test('after SIGKILL the terminal is as it was', async t => {
  const program = await start(t)
  program.draw('something')
  await program.tmux.until('something')
  const [guard] = await eventually(
    () => childrenOf(program.pid),
    found => found.length === 1,
  )
  process.kill(program.pid, 'SIGKILL')
  await eventually(
    () => stateOf(guard),
    state => state === '',
  )
  await isLeft(t, program)
})
