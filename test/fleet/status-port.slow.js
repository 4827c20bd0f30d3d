import { createServer } from 'node:net'
import t from 'tap'
import { signal } from '../../fleet/providers/processes.js'
import { fetch } from '../kit/fetch.js'
import { freePort } from '../kit/ports.js'
import { until } from '../kit/wait.js'
import { FleetCli } from './fleet-cli.js'

const host = '127.0.0.1'

t.test('fleet start names a status port in use; a relaunched drone keeps its port', async t => {
  const cli = await FleetCli.create(t)
  const port = await freePort()
  const args = ['start', '1', '--allow', host, '--status-port', String(port)]
  const server = createServer().listen(port, host)
  const { code, stderr } = await cli.run([...args, '--patience', '5s'])
  t.equal(code, 1)
  t.match(
    stderr,
    `halley: d1 did not report (it exited: drone: cannot open the status port ${host}:${port}: the address is in use); stopped: d1\n`,
  )
  await new Promise(resolve => server.close(resolve))
  t.match(await cli.run(args), { code: 0, stdout: '1 drone is up\n' })
  const status = async () => await (await fetch(`http://${host}:${port}/json`)).json()
  const first = await until(async () => (await status()).machine && status())
  const [{ handle }] = await cli.drones()
  await signal(handle, 'SIGKILL')
  await until(async () => {
    const again = await status().catch(() => null)
    return again?.processes && again.processes[0].pid !== first.processes[0].pid
  })
  t.match(await cli.run(['stop', 'all']), { code: 0 })
  await t.rejects(fetch(`http://${host}:${port}/`))
})
