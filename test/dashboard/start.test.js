import t from 'tap'
import { fetch } from '../kit/fetch.js'
import { needsTmux } from '../kit/tmux.js'
import { becomesHealthy, health, isFree, start } from './npm-start.js'

needsTmux(t)

t.test('npm start shows the dashboard, which can stop the gateway', async t => {
  const terminal = await start(t)
  const { tmux, port } = terminal
  await tmux.until(screen => screen.includes('Halley') && /workers 2/.test(screen))
  t.ok(await becomesHealthy(port))
  await tmux.keys('h')
  const help = await tmux.until(screen => screen.includes('key for the API') && /[0-9a-f]{32}/.test(screen))
  const [key] = /[0-9a-f]{32}/.exec(help) ?? []
  const info = { method: 'POST', body: '{}', headers: { 'X-API-Key': `${key}` } }
  t.equal((await fetch(`http://127.0.0.1:${port}/api/info`, info)).status, 200, 'the help shows the key')
  await tmux.keys('Escape')
  await tmux.until('workers 2')
  await tmux.keys('q')
  await tmux.until('stop the gateway?')
  await tmux.keys('n')
  await tmux.until(screen => !screen.includes('stop the gateway?'))
  await tmux.keys('q')
  await tmux.keys('s')
  const screen = await tmux.until('ended with 0')
  t.match(screen, `http://127.0.0.1:${port}`, 'address and key remain in the terminal')
  t.match(screen, 'gateway stopped')
  t.equal(await health(port), null)
  await isFree(t, terminal)
})
