import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { freePort } from './kit/ports.js'
import { RawClient } from './kit/raw-client.js'

const library = new URL('../src/index.js', import.meta.url).href

/** A program that embeds a gateway: prints its address or the error; stops it at the end of its input. */
const PROGRAM = `
import { createGateway } from ${JSON.stringify(library)}
try {
  const gateway = await createGateway({ config: JSON.parse(process.argv[2]) })
  console.log('url ' + gateway.url)
  process.stdin.on('end', async () => {
    await Promise.all([gateway.stop(), gateway.stop()])
    await gateway.stop()
    process.stdin.destroy()
  }).resume()
} catch (error) {
  console.log('error ' + error.message)
}
`

/**
 * @param {any} t
 * @param {object} config
 */
async function embed(t, config) {
  const program = join(t.testdir({ 'program.mjs': PROGRAM }), 'program.mjs')
  await writeFile(program, PROGRAM)
  const child = spawn(process.execPath, [program, JSON.stringify(config)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  /** @type {(start: string) => Promise<string>} */
  const line = start =>
    new Promise(resolve => {
      createInterface({ input: child.stdout }).on(
        'line',
        text => text.startsWith(start) && resolve(text.slice(start.length)),
      )
    })
  return { child, exited, line }
}

t.test('a program can start and stop gateways repeatedly, and then exits', async t => {
  const { child, exited, line } = await embed(t, {
    workers: 2,
    http_server: { address: '127.0.0.1', port: await freePort() },
    client: { insecure: true, allowed_origins: ['*'] },
    log: { level: 'error' },
  })
  const url = await line('url ')
  const client = await RawClient.connected(`${url.replace('http', 'ws')}/connection/websocket`)
  t.ok(client.connect.client)
  child.stdin.end()
  t.match(await client.closed, { code: 3001 })
  t.same(await exited, [0, null])
})

t.test('an unsafe configuration is refused', async t => {
  const { exited, line } = await embed(t, { http_server: { port: await freePort() } })
  t.match(await line('error '), /client\.token\.hmac_secret_key/)
  t.same(await exited, [0, null])
})
