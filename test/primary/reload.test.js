// SIGHUP.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { makeToken } from '../auth/jwt.js'
import { config, health, kept, open, until } from '../fleet.js'
import { startGateway } from '../gateway.js'
import { RawClient } from '../raw-client.js'

t.test('SIGHUP takes over channel options and token keys, also for workers to come', async t => {
  const gateway = await startGateway(t, {
    ...config,
    client: { token: { hmac_secret_key: 'old' } },
    channel: { namespaces: [{ name: 'aa' }] },
  })
  const file = join(gateway.folder, 'config.json')
  const given = JSON.parse(await readFile(file, 'utf8'))
  const token = key => makeToken({ sub: 'u' }, key)
  const connects = async key => {
    const client = await RawClient.open(gateway.ws)
    client.send({ id: 1, connect: { token: token(key) } })
    const outcome = await Promise.race([
      client.next().then(
        () => 'connected',
        () => null,
      ),
      client.closed,
    ])
    return outcome === 'connected' ? client : (await client.closed).code
  }
  const old = await connects('old')
  t.equal(await connects('new'), 3500)
  t.match((await old.subscribe('aa:x')).error, { code: 103 })
  t.match((await old.subscribe('bb:x')).error, { code: 102 })

  await writeFile(file, '{"workers": "many"}')
  gateway.process.kill('SIGHUP')
  const refused = await gateway.line(({ msg }) => /not reloaded/.test(msg))
  t.match(refused.msg, /workers/, 'a bad file changes nothing, and says why')
  t.match((await old.subscribe('bb:x')).error, { code: 102 })

  const changed = {
    ...given,
    client: { ...given.client, token: { hmac_secret_key: 'new' } },
    channel: {
      namespaces: [
        { name: 'aa', ...open },
        { name: 'bb', ...open, ...kept },
      ],
    },
  }
  await writeFile(file, JSON.stringify(changed))
  gateway.process.kill('SIGHUP')
  await gateway.line(({ msg }) => /^configuration reloaded/.test(msg))
  // The line is the primary's: each worker follows, and has done so when one connection after the other is accepted.
  const everywhere = key =>
    until(async () => {
      const clients = []
      for (let i = 0; i < 12; i++) {
        const client = await connects(key)
        if (!(client instanceof RawClient)) return null
        clients.push(client)
      }
      return clients
    })
  const clients = await everywhere('new')
  for (const client of clients) t.match(await client.subscribe('bb:x'), { subscribe: { recoverable: true } })
  t.match(await old.subscribe('aa:x'), { subscribe: {} }, 'who is connected stays, under the new rules')
  t.equal(await connects('old'), 3500)
  t.match((await gateway.api('publish', { channel: 'bb:x', data: 1 })).result, { offset: 1 })

  // A reload while a worker starts, and a worker that starts after one.
  process.kill(gateway.workerPids[0], 'SIGKILL')
  await gateway.line(({ msg }) => msg === 'worker died')
  changed.client.token.hmac_secret_key = 'third'
  await writeFile(file, JSON.stringify(changed))
  gateway.process.kill('SIGHUP')
  await until(() => gateway.lines.filter(({ msg }) => /^configuration reloaded/.test(msg)).length === 2)
  await until(async () => (await health(gateway)) === 200)
  await everywhere('third')
  const outcomes = []
  for (let i = 0; i < 16; i++) outcomes.push(await connects('new'))
  t.strictSame(outcomes, Array(16).fill(3500))
})
