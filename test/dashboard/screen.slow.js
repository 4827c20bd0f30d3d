// The program on a real terminal: screen and keys.

import { join } from 'node:path'
import t from 'tap'
import { tempDir } from '../kit/folders.js'
import { needsTmux } from '../kit/tmux.js'
import { mock, open } from './support.js'

needsTmux(t)

// Each test has its own terminal.
t.jobs = 2

for (const [how, args, env] of /** @type {[string, string, Record<string, string>][]} */ ([
  ['flags', '--ascii --no-color', {}],
  ['locale and environment', '', { LC_ALL: 'C', NO_COLOR: '1' }],
]))
  t.test(`without Unicode and colours (${how}) it prints only ASCII and marks health with signs`, async t => {
    const gateway = await mock(t)
    const block = gateway.snapshots.findIndex(
      ({ workers }) => (workers[0].sample?.loop.ticks.max ?? 0) >= 200,
    )
    const { tmux } = await open(t, `${gateway.path} ${args}`, { env })
    await tmux.until(/^ all /m)
    gateway.send({ ...gateway.snapshots[block], time: Date.now() })
    t.match(await tmux.until(/^ +0 .* 200~/m), /^[ -~\n]*$/)
    t.notMatch(await tmux.styled(), /\x1b\[[0-9;]*3[0-8]/, 'no colours')
  })

t.test('a dashboard can start before its gateway', async t => {
  const path = join(tempDir(t), 'later.sock')
  const { tmux } = await open(t, path)
  await tmux.until('no gateway is listening')
  await mock(t, {}, path)
  t.ok(await tmux.until(/^ all .*20,000[\s\S]*q quit$/m))
})
