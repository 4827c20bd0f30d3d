// The view's source, on a real controller with a real drone.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ControllerSource, sendCommand } from '../../fleet/controller/client.js'

t.test('snapshots come, also from the next controller, and commands go', async t => {
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

  /** @type {((event: any) => void)[]} */
  const waiting = []
  /** @param {(event: any) => boolean} good @returns {Promise<any>} the first event of that kind from now on */
  const next = good =>
    new Promise(resolve => {
      waiting.push(event => {
        if (good(event)) resolve(event)
      })
    })
  const tell = (/** @type {any} */ event) => {
    for (const listener of waiting) listener(event)
  }
  source.onLost(reason => tell({ reason }))
  const first = next(({ drones }) => drones?.[0]?.sample)
  source.onSnapshot(tell)
  t.equal((await first).drones[0].id, 'd1')

  const host = ['http://127.0.0.1:1']
  const more = next(({ settings }) => settings?.n === 3)
  await source.command('set', { host, n: 3 })
  t.ok(await more, 'what was told is in the next snapshot')
  await t.rejects(source.command('set', { host: ['http://127.0.0.1:2'] }), /127\.0\.0\.1:2/)

  const lost = next(({ reason }) => reason !== undefined)
  const again = lost.then(() => next(({ drones }) => drones?.[0]?.state === 'up'))
  process.kill(Number.parseInt(await readFile(join(dir, 'controller.lock'), 'utf8'), 10), 'SIGKILL')
  t.match((await lost).reason, 'the controller ended without a reply')
  t.equal((await again).settings.n, 3, 'the next one goes on with what was wanted')

  const over = next(({ reason }) => /no fleet is in/.test(reason))
  await sendCommand(dir, 'stop', { n: 'all' })
  t.match((await over).reason, /npx halley-gateway fleet start N/)
})
