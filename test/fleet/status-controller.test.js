import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ControllerSource, sendCommand } from '../../fleet/controller/client.js'
import { until } from '../kit/wait.js'

t.test('the view receives snapshots, even from the next controller, and sends commands', async t => {
  const dir = await mkdtemp(join(tmpdir(), 'halley-status-'))
  const source = new ControllerSource(dir)
  t.teardown(async () => {
    source.close()
    await sendCommand(dir, 'stop', { n: 'all' }).catch(() => {})
    await rm(dir, { recursive: true, force: true })
  })
  const launch = { allow: ['127.0.0.1:1'] }
  await sendCommand(
    dir,
    'start',
    { n: 1, provider: 'local', flags: {}, launch, settings: {} },
    { fresh: true },
  )

  const events = /** @type {any[]} */ ([])
  /** @param {(event: any) => unknown} matches @returns {Promise<any>} the next such event; those before it are dropped */
  const next = matches =>
    until(() => {
      const at = events.findIndex(matches)
      return at >= 0 && events.splice(0, at + 1).at(-1)
    }, `an event: ${matches}`)
  void source.start(event => events.push(event))
  t.equal((await next(({ snapshot }) => snapshot?.drones[0]?.sample)).snapshot.drones[0].id, 'd1')

  const host = ['http://127.0.0.1:1']
  await source.command('set', { host, n: 3 })
  t.ok(await next(({ snapshot }) => snapshot?.settings.n === 3))
  await t.rejects(source.command('set', { host: ['http://127.0.0.1:2'] }), /127\.0\.0\.1:2/)

  process.kill(Number.parseInt(await readFile(join(dir, 'controller.lock'), 'utf8'), 10), 'SIGKILL')
  t.match((await next(({ type }) => type === 'lost')).reason, 'the controller exited without a reply')
  const { snapshot } = await next(({ snapshot }) => snapshot?.drones[0]?.state === 'up')
  t.equal(snapshot.settings.n, 3, 'the next controller keeps the settings')

  await sendCommand(dir, 'stop', { n: 'all' })
  t.match((await next(({ reason }) => /no fleet in/.test(reason))).reason, /npx halley-gateway fleet start N/)
})
