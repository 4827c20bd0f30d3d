// The program of docs/chat.md in two browsers, as it is after the last step.

import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { needsChromium } from '../kit/browser/browser.js'
import { RemotePage } from '../kit/browser/remote-page.js'
import { startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'
import { blockWith, withSecrets } from './blocks.js'
import { workplace } from './workplace.js'

needsChromium(t)

const PAGE = 'docs/chat.md'
const MESSAGES = `document.getElementById('messages').textContent`
const HERE = `document.getElementById('here').textContent`
const STATE = `document.getElementById('state').textContent`

const sends = (page, text) => page.fill({ text }, 'say')

t.test('two people use a public and a private room', async t => {
  const [port, own] = [await freePort(), await freePort()]
  const here = text =>
    text
      .replaceAll('127.0.0.1:8000', `127.0.0.1:${port}`)
      .replaceAll('"port": 8000', `"port": ${port}`)
      .replaceAll('127.0.0.1:3000', `127.0.0.1:${own}`)
      .replaceAll('listen(3000', `listen(${own}`)
  const text = here(withSecrets(blockWith(PAGE, 'json', 'http_api')))
  const config = JSON.parse(text)
  const gateway = await startGateway(t, { ...config, workers: 1 })
  const server = here(blockWith(PAGE, 'js', 'createServer'))
  const folder = await workplace(t, ['centrifuge', 'jsonwebtoken'], {
    'halley.json': text,
    'server.js': `${server}\nprocess.on('message', async () => {\n${blockWith(PAGE, 'js', 'unsubscribe')}\nprocess.send('done')\n})\n`,
    'page.html': here(blockWith(PAGE, 'html', 'new Centrifuge')),
  })
  await writeFile(join(folder, 'ready.mjs'), `import './server.js'\nprocess.send('ready')\n`)
  const backend = spawn(process.execPath, ['ready.mjs'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  t.teardown(() => backend.kill('SIGKILL'))
  await new Promise((resolve, reject) => {
    backend.once('message', resolve)
    backend.once('exit', code => reject(new Error(`the backend ended with ${code}`)))
  })

  const url = `http://127.0.0.1:${own}/`
  const [ann, ben] = [
    await RemotePage.open(t, `${url}?user=ann`),
    await RemotePage.open(t, `${url}?user=ben`),
  ]
  await ann.until(`${HERE} === 'ann, ben'`)
  await sends(ben, 'hello <b>there</b>')
  await ann.until(`${MESSAGES}.includes('ben: hello <b>there</b>')`)

  await ben.go(`${url}?user=ben&room=$room:staff`)
  await ann.until(`${HERE} === 'ann'`)
  await ben.until(`${HERE} === 'ben'`)
  await ann.go(`${url}?user=ann&room=$room:staff`)
  await ben.until(`${HERE} === 'ann, ben'`)
  await sends(ann, 'for us')
  await ben.until(`${MESSAGES} === 'ann: for us'`)
  backend.send('unsubscribe')
  await ben.until(`${STATE}.includes('may not enter')`)

  await ben.go(`${url}?user=cay&room=$room:staff`)
  await ben.until(`${STATE}.includes('may not enter')`)
  await ben.go(`${url}?user=cay`)
  await ben.until(`${MESSAGES} === 'ben: hello <b>there</b>'`)
  t.same([...ann.faults, ...ben.faults], [])
  t.equal(gateway.lines.filter(({ level }) => level >= 50).length, 0)
})
