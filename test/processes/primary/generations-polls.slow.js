// Polls while workers are replaced: long-poll sessions are reachable over any worker until they are closed.

import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { config } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { PollClient } from '../../kit/poll-client.js'
import { poll } from '../../kit/uni-poll-client.js'

for (const driver of ['uws', 'node']) {
  t.test(
    `${driver}: pending polls get a response, sessions get a close notice`,
    { skip: skipDriver(driver) },
    async t => {
      const gateway = await startGateway(t, {
        ...config,
        http_server: { driver },
        poll: { enabled: true },
        uni_poll: { enabled: true },
      })
      // For some clients, session and poll are in the same worker; for others in two.
      const clients = await Promise.all(Array.from({ length: 16 }, () => PollClient.connected(gateway)))
      const ends = clients.map(async client => {
        while (client.close === null) await client.poll(30)
        return client.close
      })
      // One-way polls are pending, too.
      const waiting = Array.from({ length: 8 }, () => poll(gateway, { channel: 'news', timeout: 30 }))
      await gateway.api('publish', { channel: 'warm', data: 1 })
      gateway.process.kill('SIGUSR2')
      for (const end of await Promise.all(ends)) t.equal(end, '3001 shutdown')
      for (const { status } of await Promise.all(waiting)) t.equal(status, 200)
      await gateway.line(({ msg }) => msg === 'rolling restart finished')
    },
  )
}
