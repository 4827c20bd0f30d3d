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

// Each test waits for a terminal of its own.
t.jobs = 3

t.test('process.exit right after close restores the terminal', async t => {
  const program = await start(t)
  program.draw('something')
  await program.tmux.until('something')
  const guard = await guardOf(program.pid)
  program.tell({ exit: true })
  await hasEnded(program.pid)
  t.ok(await hasEnded(guard), 'the guard has ended')
  await isLeft(t, program)
})

for (const [how, options, kill] of /** @type {[string, object, (program: any) => void][]} */ ([
  ['an exception that the program handles', {}, program => program.tell({ throw: true })],
  ['an exception that nobody handles', { bare: true }, program => program.tell({ throw: true })],
  ['SIGTERM that the program handles', {}, program => process.kill(program.pid, 'SIGTERM')],
  ['SIGTERM that nobody handles', { bare: true }, program => process.kill(program.pid, 'SIGTERM')],
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
    t.ok(await hasEnded(guard), 'the guard has ended')
  })

t.test('keys are reported by name, with and without Ctrl', async t => {
  const { tmux, hear, pid } = await start(t)
  for (const [key, name] of [
    ['q', 'q'],
    ['G', 'G'],
    ['é', 'é'],
    ['Space', 'space'],
    ['Up', 'up'],
    ['PageDown', 'pagedown'],
    ['Home', 'home'],
    ['F1', 'f1'],
    ['F5', 'f5'],
    ['Enter', 'enter'],
    ['Tab', 'tab'],
    ['BTab', 'S-tab'],
    ['BSpace', 'backspace'],
    ['C-c', 'C-c'],
    ['C-s', 'C-s'],
    ['C-Right', 'C-right'],
    ['M-x', 'M-x'],
    ['Escape', 'escape'],
  ]) {
    await tmux.keys(key)
    t.equal((await hear('key')).key, name, key)
  }
  t.not(stateOf(pid), '', 'Ctrl-C ends nothing by itself')
})

t.test('a resize is reported and repainted', async t => {
  const { tmux, hear, draw } = await start(t)
  draw('a line that is longer than forty columns: here is its end')
  await tmux.until('its end')
  await tmux.resize(40, 10)
  t.strictSame((await hear('size')).size, { columns: 40, rows: 10 })
  t.ok(await tmux.until(screen => screen === 'a line that is longer than forty columns'))
  await tmux.resize(100, 30)
  t.strictSame((await hear('size')).size, { columns: 100, rows: 30 })
  t.ok(await tmux.until(screen => screen === 'a line that is longer than forty columns: here is its end'))
})

t.test('Ctrl-Z returns the terminal to the shell, and fg takes it back', async t => {
  const program = await start(t)
  const { tmux, draw, hear, pid } = program
  draw('here we are')
  await tmux.until('here we are')
  await tmux.keys('C-z')
  t.ok(await isStopped(pid), 'it is stopped')
  await isLeft(t, program)
  await tmux.enter('fg')
  t.ok(await tmux.until(screen => screen === 'here we are'))
  t.equal(await tmux.display('alternate_on'), '1')
  await tmux.keys('x')
  t.equal((await hear('key')).key, 'x')
  program.tell({ end: true })
  await isLeft(t, program)
})

t.test('SIGTSTP and SIGSTOP suspend it, SIGCONT resumes it', async t => {
  // A shell that takes the terminal back by itself.
  const program = await start(t, {}, { command: ['bash', '--norc'] })
  const { tmux, draw, hear, pid } = program
  draw('here we are')
  await tmux.until('here we are')
  process.kill(pid, 'SIGTSTP')
  await isStopped(pid)
  await isLeft(t, program)
  await tmux.enter('fg')
  await tmux.until('here we are')
  // This one it cannot see coming. The shell takes the terminal, and writes on our screen.
  process.kill(pid, 'SIGSTOP')
  await tmux.enter('clear')
  await tmux.until(screen => !screen.includes('here we are'))
  await tmux.enter('fg')
  t.ok(await tmux.until(screen => screen === 'here we are'))
  await tmux.keys('x')
  t.equal((await hear('key')).key, 'x', 'keys come again')
  program.tell({ end: true })
  await tmux.until('what was before')
})

t.test('Ctrl-Z is an ordinary key if the program is not suspendable', async t => {
  const { tmux, hear } = await start(t, { suspendable: false })
  await tmux.keys('C-z')
  t.equal((await hear('key')).key, 'C-z')
})

t.test('Ctrl-L repaints the screen', async t => {
  const { tmux, draw } = await start(t)
  draw('one', 'two', 'three')
  await tmux.until('three')
  writeFileSync(await tmux.display('pane_tty'), '\x1b[2;1Hrubbish')
  await tmux.until('rubbish')
  await tmux.keys('C-l')
  t.ok(await tmux.until(screen => screen === 'one\ntwo\nthree'))
})

t.test('a terminal that does not read blocks nothing and shows the last frame later', async t => {
  const { tmux, tell, hear } = await start(t)
  const server = Number(await tmux.display('pid'))
  process.kill(server, 'SIGSTOP')
  try {
    tell({ flood: true })
    for (let frames = 0; frames < 5000; ) frames = (await hear('flood')).flood
    tell({ last: [[['the last frame', '']]] })
  } finally {
    process.kill(server, 'SIGCONT')
  }
  t.ok(await tmux.until(screen => screen === 'the last frame'))
})

t.test('incremental updates equal a full repaint', async t => {
  const { tmux, tell, hear } = await start(t, {}, { columns: 60, rows: 12 })
  let seed = 1
  /** @param {number} below */
  const random = below => (seed = (seed * 48271) % 2147483647) % below
  const texts = [
    'abc',
    '   ',
    '─┤│',
    '漢字',
    '⣿⠁',
    'é',
    '⚠',
    '🙂',
    'e\u0301',
    '한',
    ' x',
    '\x1b[31m',
    'ก็',
    '½',
  ]
  const styles = ['', 'good', 'bad', 'selected', 'title', 'dim', 'selected warn']
  for (let frame = 0; frame < 12; frame++) {
    const lines = Array.from({ length: 11 }, () =>
      Array.from({ length: random(25) }, () => [texts[random(texts.length)], styles[random(styles.length)]]),
    )
    tell({ draw: [...lines, [[`frame ${frame}.`, '']]] })
    await hear('drawn')
    await tmux.until(`frame ${frame}.`)
    const changed = looks(await tmux.styled())
    // The marker is on the last line: when it is there again, so is everything else.
    writeFileSync(await tmux.display('pane_tty'), '\x1b[0m\x1b[2J')
    await tmux.until(screen => screen === '')
    await tmux.keys('C-l')
    await tmux.until(`frame ${frame}.`)
    if (!t.strictSame(looks(await tmux.styled()), changed, `frame ${frame}`)) break
  }
})

t.test('untrusted text moves no cursor and sets no colours', async t => {
  const { tmux, draw } = await start(t)
  draw(
    'before',
    'log: \x1b[2J\x1b[9;9H\x1b[31mred\x1b]0;title\x07 \x9b5Aup\r\nover\ttab\b\b \x1b(0 \u202eright',
    'after',
  )
  t.ok(await tmux.until(screen => screen === 'before\nlog: red up  over tab?? ?(0 right\nafter'))
  t.notMatch(await tmux.styled(), '\x1b[31m')
  t.not(await tmux.display('pane_title'), 'title')
})

t.test('without UTF-8 and colours it writes plain ASCII', async t => {
  const { tmux, tell, capabilities } = await start(t, {}, { env: { LC_ALL: 'C', NO_COLOR: '1' } })
  t.strictSame(capabilities, { unicode: false, colors: 0, screen: true })
  tell({
    draw: [
      [
        ['│ é 漢 µs … ⣿ ', 'bad'],
        ['good', 'good'],
      ],
    ],
  })
  t.ok(await tmux.until(screen => screen === '| e ?? us . ? good'))
  t.notMatch(await tmux.styled(), /\x1b\[[0-9;]*[34][0-8]/)
})
