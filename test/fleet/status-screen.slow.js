import t from 'tap'
import { needsTmux } from '../kit/tmux.js'
import { open, snapshots } from './status-terminal.js'

needsTmux(t)

t.test('while the controller is lost, the last figures stay on the screen', async t => {
  const { tmux, send, beat } = await open(t, { fed: false })
  await tmux.until('waiting for the first figures')
  send({ lost: 'ECONNREFUSED' })
  await tmux.until(/no controller for .*ECONNREFUSED/)
  for (const snapshot of snapshots) send({ snapshot })
  await tmux.until(/^ all .*100,000/m)
  send({ lost: 'it has ended' })
  t.match(await tmux.until(/controller gone for .*it has ended/), /^ all .*100,000/m)
  beat()
  await tmux.until(screen => !screen.includes('controller gone'))
  await tmux.until(/no data for .*: controller stuck or stopped/)
})

t.test('--ascii and --no-color work; without a command connection the view is read-only', async t => {
  const { tmux } = await open(t, { flags: { ascii: true, noColor: true, readOnly: true } })
  t.match(await tmux.until(/^ all .*100,000/m), /^[ -~\n]*$/)
  t.notMatch(await tmux.styled(), /\x1b\[[0-9;]*3[0-8]/, 'no colours')
  await tmux.keys('+')
  await tmux.until('this view is read-only')
})
