import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { SETTINGS } from '../../fleet/settings.js'
import { startGateway } from '../kit/gateway.js'
import { OPEN_GATEWAY } from './controller/fleet-rig.js'
import { FleetCli } from './fleet-cli.js'

t.test('commands of a fleet', async t => {
  const gateway = await startGateway(t, OPEN_GATEWAY)
  const cli = await FleetCli.create(t)
  const host = ['--host', gateway.url]

  t.test('a dry run prints the launch plan only', async t => {
    const args = ['start', '2', ...host, '--set', 'n=40', '--api-key', 'secret-key', '--dry-run']
    const { code, stdout } = await cli.run(args)
    t.equal(code, 0)
    t.match(stdout, `d2.json`)
    t.match(stdout, 'then: set n 40')
    t.match(stdout, `"allow":["127.0.0.1:${gateway.port}"]`)
    t.notMatch(stdout, 'secret-key')
    t.same(await readdir(cli.dir), [])
  })

  t.test('start launches drones and a controller and waits for their reports', async t => {
    const { code, stdout, stderr } = await cli.run(
      ['start', '2', ...host, '--set', 'n=40', '--set', 'channels=s{1..40}'],
      { HALLEY_FLEET_API_KEY: 'key' },
    )
    t.match(stderr, '2 of 2 drones have reported')
    t.equal(stdout, '2 drones are up\n')
    t.equal(code, 0)
    t.equal((await stat(cli.dir)).mode & 0o777, 0o700)
    for (const file of ['state.json', 'control.sock', 'controller.log', 'statistics.csv'])
      t.equal((await stat(join(cli.dir, file))).mode & 0o777, 0o600, file)
    const { secret } = JSON.parse(await readFile(join(cli.dir, 'state.json'), 'utf8'))
    t.match(secret, /^[0-9a-f]{64}$/)
    const pids = [
      await cli.controller(),
      ...(await cli.drones()).map(({ handle }) => Number.parseInt(handle, 10)),
    ]
    for (const pid of pids) t.notMatch(await readFile(`/proc/${pid}/cmdline`, 'utf8'), /[0-9a-f]{64}|key$/)
    t.notMatch(await readFile(join(cli.dir, 'controller.log'), 'utf8'), secret)
    await cli.until(({ gauges }) => gauges.open === 40)
  })

  t.test('set changes settings; invalid ones are refused with a reason', async t => {
    t.same(await cli.run(['set', 'n', '50']), { code: 0, stdout: '', stderr: '' })
    t.equal((await cli.run(['set', 'publish_rate=100', 'publish_channels=s{1..40}'])).code, 0)
    await cli.until(({ gauges, counters }) => gauges.open === 50 && counters.received > 50)
    t.equal((await cli.run(['set', 'publish-rate', '0'])).code, 0)
    for (const [code, text, ...args] of /** @type {[number, string | RegExp, ...string[]][]} */ ([
      [2, 'did you mean channels?', 'set', 'chanels', 'x'],
      [2, '"many" is not a number', 'set', 'n', 'many'],
      [1, /d1, d2 refuse: .*127\.0\.0\.1:1/, 'set', 'host', 'http://127.0.0.1:1'],
      [1, 'unknown drone d9; did you mean d1?', 'restart', 'd9'],
      [2, 'the number of drones: "0" is not a number from 1', 'start', '0', ...host],
      [2, '--spot requires --provider ec2; the provider is local', 'start', '1', ...host, '--spot'],
      [2, 'unknown provider "ec3"; use local or ec2', 'start', '1', ...host, '--provider', 'ec3'],
      [2, '"long" is not a duration like 300s or 5m', 'ramp', '--to', '5', '--over', 'long'],
      [2, '--allow: "http://x:8000" is not HOST or HOST:PORT', 'start', '1', '--allow', 'http://x:8000'],
      [2, 'the number of drones is missing', 'start'],
      [1, 'it is a file, or below one', 'set', 'n', '1', '--dir', join(cli.dir, 'state.json')],
    ])) {
      const refused = await cli.runInProcess(args)
      t.equal(refused.code, code, args.join(' '))
      t.match(refused.stderr, text)
      t.match(refused.stderr, /^halley: [^\n]+\n$/, 'one line')
    }
    const { stdout } = await cli.runInProcess(['set'])
    for (const { name, doc } of SETTINGS) t.match(stdout, new RegExp(`^${name} .*${doc.slice(0, 20)}`, 'm'))
    t.match((await cli.runInProcess(['set', 'n'])).stdout, /^n +50 /)
  })

  t.test('ramp raises the number of connections and waits for it', async t => {
    const { code, stdout, stderr } = await cli.run(['ramp', '--to', '60', '--over', '2s'])
    t.equal(code, 0)
    t.match(stdout, /^ramp finished: 60 connections wanted, \d+ open(?:, \d+ opening)?\n$/)
    t.match(stderr, /ramping to 60/)
    await cli.until(({ gauges }) => gauges.open === 60)
  })

  t.test('the next command restarts a killed controller, which finds its drones', async t => {
    const before = await cli.until(({ rates }) => rates.published === 0 && rates.received === 0)
    const pid = await cli.controller()
    process.kill(pid, 'SIGKILL')
    const after = await cli.status()
    t.not(await cli.controller(), pid)
    t.same(
      after.drones.map(({ id, handle, state }) => [id, handle, state]),
      before.drones.map(({ id, handle }) => [id, handle, 'up']),
    )
    t.equal(after.gauges.open, 60)
    t.match(after.counters, { received: before.counters.received, opened: before.counters.opened, lost: 0 })
    t.match((await cli.run(['status'])).stdout, /d1 +local up/)
  })

  t.test('drones can be added and stopped; after stop all only statistics and log remain', async t => {
    t.equal((await cli.run(['start', '1'])).stdout, '1 drone is up\n')
    await cli.until(({ gauges, drones }) => gauges.open === 60 && drones.length === 3)
    t.equal((await cli.run(['stop', '2'])).stdout, 'stopped: d2, d3; 1 left\n')
    await cli.until(({ gauges }) => gauges.open === 60)
    const all = await cli.run(['stop', 'all'])
    t.equal(all.stdout, 'stopped: 1 drone\n')
    t.same(await cli.drones(), [])
    t.equal(await cli.controller(), 0)
    t.same((await readdir(cli.dir)).sort(), ['controller.log', 'statistics.csv'])
    const rows = (await readFile(join(cli.dir, 'statistics.csv'), 'utf8')).trim().split('\n')
    t.match(rows[0], /^time,connections,wanted,/)
    t.equal(rows.filter(row => row.startsWith('time')).length, 1, 'one header, also of two controllers')
    t.match(
      await readFile(join(cli.dir, 'controller.log'), 'utf8'),
      /latency of the last 5 s: \d+ messages, min .* sd /,
    )
    t.match(await cli.run(['stop', 'all']), { code: 0, stdout: 'no drones were running\n' })
    t.match(await cli.run(['status']), {
      code: 1,
      stderr: /^halley: no fleet in .*; start one with `npx halley-gateway fleet start N`\n$/,
    })
  })
})
