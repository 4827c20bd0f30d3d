import { writeFileSync } from 'node:fs'
import t from 'tap'
import { needsTmux } from '../../kit/tmux.js'
import { guardOf, hasEnded, isLeft, isStopped, start, stateOf } from './on-terminal.js'

needsTmux(t)

/**
 * @param {string} styled what tmux says of a screen: the same look may be said in several ways
 * @returns {string[]} each row as characters with their looks, without plain blanks at its end
 */
function looks(styled) {
  let look = ''
  return styled.split('\n').map(row => {
    const cells = []
    for (const [, codes, character] of row.matchAll(/\x1b\[([\d;]*)m|([^\x1b])/gu)) {
      if (character !== undefined) cells.push(character + look)
      else if (codes.startsWith('38')) look = look.replace(/\/.*|$/, `/${codes}`)
      else if (codes === '39') look = look.replace(/\/.*/, '')
      else if (codes !== '49')
        look = codes.startsWith('0') ? codes.replace(/^0;?/, '') : look.replace(/^/, codes)
    }
    while (cells.at(-1) === ' ') cells.pop()
    return cells.join(' ')
  })
}

// Each test has its own terminal.
t.jobs = 3

for (const [how, options, kill] of /** @type {[string, object, (program: any) => void][]} */ ([
  ['process.exit right after close', {}, program => program.send({ exit: true })],
  ['a handled exception', {}, program => program.send({ throw: true })],
  ['an unhandled exception', { bare: true }, program => program.send({ throw: true })],
  ['a handled SIGTERM', {}, program => process.kill(program.pid, 'SIGTERM')],
  ['an unhandled SIGTERM', { bare: true }, program => process.kill(program.pid, 'SIGTERM')],
  ['SIGHUP', {}, program => process.kill(program.pid, 'SIGHUP')],
  ['SIGKILL', {}, program => process.kill(program.pid, 'SIGKILL')],
]))
  t.test(`restores the terminal after ${how}`, async t => {
    const program = await start(t, options)
    program.draw('something')
    await program.tmux.until('something')
    const guard = await guardOf(program.pid)
    kill(program)
    await hasEnded(program.pid)
    await isLeft(t, program)
    t.ok(await hasEnded(guard), 'the guard has exited')
  })

t.test('keys are reported by name, with and without Ctrl', async t => {
  const { tmux, next, pid } = await start(t)
  const same = ['q', 'G', 'é', 'C-c', 'C-s', 'M-x'].map(key => [key, key])
  const others = { BTab: 'S-tab', BSpace: 'backspace', 'C-Right': 'C-right' }
  const lower = 'Space Up PageDown Home F1 F5 Enter Tab Escape'
    .split(' ')
    .map(key => [key, key.toLowerCase()])
  for (const [key, name] of [...same, ...Object.entries(others), ...lower]) {
    await tmux.keys(key)
    t.equal((await next('key')).key, name, key)
  }
  t.not(stateOf(pid), '', 'Ctrl-C is only a key')
})

t.test('a resize is reported and repainted', async t => {
  const { tmux, next, draw } = await start(t)
  draw('a line that is longer than forty columns: here is its end')
  await tmux.until('its end')
  await tmux.resize(40, 10)
  t.strictSame((await next('size')).size, { columns: 40, rows: 10 })
  t.ok(await tmux.until(screen => screen === 'a line that is longer than forty columns'))
  await tmux.resize(100, 30)
  t.strictSame((await next('size')).size, { columns: 100, rows: 30 })
  t.ok(await tmux.until(screen => screen === 'a line that is longer than forty columns: here is its end'))
})

t.test('Ctrl-Z returns the terminal to the shell, and fg takes it back', async t => {
  const program = await start(t)
  const { tmux, draw, next, pid } = program
  draw('here we are')
  await tmux.until('here we are')
  await tmux.keys('C-z')
  t.ok(await isStopped(pid), 'the program is stopped')
  await isLeft(t, program)
  await tmux.enter('fg')
  t.ok(await tmux.until(screen => screen === 'here we are'))
  t.equal(await tmux.display('alternate_on'), '1')
  await tmux.keys('x')
  t.equal((await next('key')).key, 'x')
  program.send({ end: true })
  await isLeft(t, program)
})

t.test('SIGTSTP and SIGSTOP suspend it, SIGCONT resumes it', async t => {
  // A shell that resets the terminal by itself.
  const program = await start(t, {}, { command: ['bash', '--norc'] })
  const { tmux, draw, next, pid } = program
  draw('here we are')
  await tmux.until('here we are')
  process.kill(pid, 'SIGTSTP')
  await isStopped(pid)
  await isLeft(t, program)
  await tmux.enter('fg')
  await tmux.until('here we are')
  // SIGSTOP cannot be handled: the shell takes the terminal, and writes on the program's screen.
  process.kill(pid, 'SIGSTOP')
  await tmux.enter('clear')
  await tmux.until(screen => !screen.includes('here we are'))
  await tmux.enter('fg')
  t.ok(await tmux.until(screen => screen === 'here we are'))
  await tmux.keys('x')
  t.equal((await next('key')).key, 'x', 'keys are reported again')
  program.send({ end: true })
  await tmux.until('what was before')
})

t.test('Ctrl-Z is an ordinary key if the program is not suspendable', async t => {
  const { tmux, next } = await start(t, { suspendable: false })
  await tmux.keys('C-z')
  t.equal((await next('key')).key, 'C-z')
})

t.test('a terminal that does not read blocks nothing and shows the last frame later', async t => {
  const { tmux, send, next } = await start(t)
  const server = Number(await tmux.display('pid'))
  process.kill(server, 'SIGSTOP')
  try {
    send({ flood: true })
    for (let frames = 0; frames < 5000; ) frames = (await next('flood')).flood
    send({ last: [[['the last frame', '']]] })
  } finally {
    process.kill(server, 'SIGCONT')
  }
  t.ok(await tmux.until(screen => screen === 'the last frame'))
})

t.test('incremental updates equal a full repaint by Ctrl-L', async t => {
  const { tmux, send, next } = await start(t, {}, { columns: 60, rows: 12 })
  let seed = 1
  /** @param {number} below */
  const random = below => (seed = (seed * 48271) % 2147483647) % below
  const texts = 'abc|   |─┤│|漢字|⣿⠁|é|⚠|🙂|e\u0301|한| x|\x1b[31m|ก็|½'.split('|')
  const styles = ['', 'good', 'bad', 'selected', 'title', 'dim', 'selected warn']
  for (let frame = 0; frame < 12; frame++) {
    const lines = Array.from({ length: 11 }, () =>
      Array.from({ length: random(25) }, () => [texts[random(texts.length)], styles[random(styles.length)]]),
    )
    send({ draw: [...lines, [[`frame ${frame}.`, '']]] })
    await next('drawn')
    await tmux.until(`frame ${frame}.`)
    const changed = looks(await tmux.styled())
    // The marker is on the last line: all other lines are drawn before it.
    writeFileSync(await tmux.display('pane_tty'), '\x1b[0m\x1b[2J')
    await tmux.until(screen => screen === '')
    await tmux.keys('C-l')
    await tmux.until(`frame ${frame}.`)
    if (!t.strictSame(looks(await tmux.styled()), changed, `frame ${frame}`)) break
  }
})
