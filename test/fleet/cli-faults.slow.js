import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { lockOwner } from '../../fleet/controller/folder.js'
import { isAlive } from '../../fleet/providers/processes.js'
import { until } from '../kit/wait.js'
import { FleetCli } from './fleet-cli.js'

/** @param {string} dir @param {string} id of a drone that never comes up */
async function nodeWithout(dir, id) {
  const file = join(dir, 'node')
  await writeFile(
    file,
    `#!/bin/sh\ncase $2 in */${id}.json) exec sleep 1000;; esac\nexec "${process.execPath}" "$@"\n`,
  )
  await chmod(file, 0o755)
  return file
}

/** A controller exits immediately after a failed launch: the next one may have other credentials. @param {FleetCli} cli */
const gone = cli => until(async () => (await lockOwner(cli.dir)) === 0)

t.test('a drone that never reports is named; the others are stopped, or kept on request', async t => {
  const cli = await FleetCli.create(t)
  const node = await nodeWithout(cli.dir, 'd2')
  const args = ['start', '2', '--allow', '127.0.0.1', '--patience', '6s', '--node', node]
  const { code, stderr } = await cli.run(args)
  t.equal(code, 1)
  t.match(stderr, /\nhalley: d2 did not report \(no report within 6 s\); stopped: d1, d2\n$/)
  t.same(await cli.drones(), [])
  await gone(cli)
  const kept = await cli.run([...args, '--keep'])
  t.match(kept, { code: 0, stdout: '1 drone is up\n', stderr: /d2 did not report .*; kept: d1\n$/ })
  t.same(
    (await cli.drones()).map(({ id }) => id),
    ['d1'],
  )

  t.test('drones can be stopped even if the state is damaged', async t => {
    process.kill(await cli.controller(), 'SIGKILL')
    await writeFile(join(cli.dir, 'state.json'), '{"version":1,"run":')
    const { code, stderr } = await cli.run(['set', 'n', '5'])
    t.equal(code, 1)
    t.match(
      stderr,
      /^halley: [^\n]*state\.json is damaged \(it is not JSON\); `npx halley-gateway fleet stop all` still stops[^\n]*\n$/,
    )
    t.match(await cli.run(['stop', 'all']), { code: 0, stdout: 'stopped: 1 drone\n' })
    t.same(await cli.drones(), [])
    t.match((await cli.run(['status'])).stderr, /no fleet in/)
  })
})

t.test('an interrupted start stops its drones', async t => {
  const cli = await FleetCli.create(t)
  const node = await nodeWithout(cli.dir, 'd1')
  const child = cli.spawn(['start', '2', '--allow', '127.0.0.1', '--node', node])
  const done = cli.result(child)
  await new Promise(resolve =>
    child.stderr.on(
      'data',
      data => String(data).includes('1 of 2 drones have reported') && resolve(undefined),
    ),
  )
  const there = await cli.drones()
  t.equal(there.length, 2)
  t.match(await cli.run(['controller']), {
    code: 1,
    stderr: /^halley: another controller \(process \d+\) uses [^\n]+\n$/,
  })
  child.kill('SIGINT')
  t.match(await done, { code: 1, stderr: /the launch was interrupted; stopped: d1, d2\n$/ })
  for (const { handle } of there) t.notOk(await isAlive(handle))

  await gone(cli)
  t.match(await cli.run(['start', '1', '--allow', '127.0.0.1']), { code: 0, stdout: '1 drone is up\n' })
  t.match(await cli.run(['stop', '5']), {
    code: 0,
    stdout: /^stopped: d\d; no drones left \(requested 5, only 1 running\)\n$/,
  })
})
