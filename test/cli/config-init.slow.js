// `config init` in a terminal, and a gateway that runs with the written file.

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { tempDir } from '../kit/folders.js'
import { bin } from '../kit/gateway.js'
import { needsTmux, Tmux } from '../kit/tmux.js'

needsTmux(t)

const HALLEY = `${process.execPath} ${bin}`

t.test('config init prompts on a terminal, and a gateway starts with the written file', async t => {
  const cwd = tempDir(t)
  const tmux = await Tmux.start(t, { columns: 160, rows: 40, env: { XDG_RUNTIME_DIR: cwd } })
  await tmux.enter(`cd ${cwd}; ${HALLEY} config init; echo exit $?`)
  await tmux.until('Port [8000]:')
  await tmux.enter('70000')
  await tmux.until('70000 is not a port number (1 to 65535)')
  await tmux.enter('9123')
  await tmux.until('Origins of your pages [https://example.com]:')
  await tmux.enter('https://a.example http://localhost:3000')
  await tmux.until(/Transports in addition to WebSocket .* \[none\]:/)
  await tmux.enter('sse, poll')
  await tmux.until('redis for several [memory]:')
  await tmux.keys('Enter')
  await tmux.until(/config\.yaml: written[\s\S]*npx halley-gateway serve -c config\.yaml\nexit 0/)
  const file = join(cwd, 'config.yaml')
  t.equal(statSync(file).mode & 0o777, 0o600)
  const { config, warnings } = loadConfig({ file })
  t.same(warnings, [])
  t.match(config, {
    http_server: { port: 9123 },
    client: { allowed_origins: ['https://a.example', 'http://localhost:3000'] },
    sse: { enabled: true },
    poll: { enabled: true },
    uni_sse: { enabled: false },
    engine: { type: 'memory' },
  })

  await tmux.enter(`clear; ${HALLEY} config init; echo exit $?`)
  await tmux.until(/config\.yaml: already exists; use --force[^\n]*\nexit 1/)
  for (const key of ['C-d', 'C-c']) {
    await tmux.enter(`clear; ${HALLEY} config init b.yaml --port 9124; echo exit $?`)
    await tmux.until('Origins of your pages')
    await tmux.keys(key)
    await tmux.until(/no file was written\nexit 1/)
  }
  t.notOk(existsSync(join(cwd, 'b.yaml')))

  await tmux.enter(`clear; ${HALLEY} config check -c config.yaml; echo exit $?`)
  await tmux.until(/config\.yaml: valid\nexit 0/)
  const flags = '--port 0 --address 127.0.0.1 --workers 1 --no-dashboard'
  await tmux.enter(`clear; ${HALLEY} serve -c config.yaml ${flags}; echo exit $?`)
  await tmux.until('halley is listening')
  await tmux.keys('C-c')
  await tmux.until('exit 0')
})
