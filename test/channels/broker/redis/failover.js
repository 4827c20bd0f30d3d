// Effects of a failover on clients.

import { until } from '../../../kit/wait.js'
import { channels, startNode } from './nodes.js'
import { audit, begin, Listener, Load, SdkListener, unrecoveredCounts } from './traffic.js'

/** @typedef {import('../../../kit/servers/redis.js').RedisServer} RedisServer */

/**
 * @typedef {object} Topology masters and replicas
 * @property {string} address
 * @property {() => Promise<RedisServer[]>} masters
 * @property {(master: RedisServer) => Promise<RedisServer>} replicaOf one replica, the only one that can take its place
 * @property {(master: RedisServer) => Promise<unknown>} stepDown its replica takes over
 * @property {boolean} [losesAtOnce] whether a master that steps down loses what it has not replicated
 * @property {boolean} exact whether nothing is lost when a master steps down
 * @property {() => Promise<void>} whole resolves when all are there, and the replicas have what their masters have
 */

const IO_TIMEOUT = 3000

/** @param {RedisServer} server */
const written = async server => Number((await server.info('replication')).master_repl_offset)

/**
 * As `audit`, where the new master may lack what the old one had acknowledged: clients that have received it are notified,
 * and others never receive it.
 * @param {any} t @param {Load} load @param {(Listener | SdkListener)[]} listeners
 * @param {import('../../../kit/gateway.js').TestGateway} gateway
 */
async function lenientAudit(t, load, listeners, gateway) {
  /** @type {string[]} */
  const wrong = []
  for (const [channel, acknowledged] of load.acknowledged) {
    const result = await until(async () => (await gateway.api('history', { channel, limit: 0 })).result)
    /** @type {{publications: {offset: number, data: {id: string}}[]}} */
    const { publications } = await until(
      async () => (await gateway.api('history', { channel, limit: -1 })).result,
    )
    const survived = new Map(publications.map(({ offset, data }) => [`${result.epoch}:${offset}`, data.id]))
    const oldest = publications[0]?.offset ?? Infinity
    /** @param {string} position */
    const isLost = position => {
      const [epoch, offset] = position.split(':')
      const kept = epoch === result.epoch && Number(offset) >= oldest
      return kept && survived.get(position) !== acknowledged.get(position)
    }
    const found = new Map([...acknowledged].filter(([position]) => !isLost(position)))
    const lost = [...acknowledged.keys()].filter(isLost)
    for (const { faults, tracks } of listeners) {
      const track = /** @type {import('./traffic.js').Track} */ (tracks.get(channel))
      await track.reaches(result)
      const missing = track.compare(found)
      wrong.push(
        ...faults.splice(0),
        ...lost
          .filter(position => track.unrecovered === 0 && track.got.has(position))
          .map(position => `${channel}: received ${position}, which is lost, without a notice`),
        ...missing.filter(fault => track.unrecovered === 0 || !fault.includes('was acknowledged as')),
      )
    }
  }
  t.same(wrong.slice(0, 10), [], 'clients get everything in order, or are notified')
  const codes = [...load.errors.keys()].filter(code => code !== 100)
  t.same(codes, [])
}

/** @param {RedisServer} replica @returns {Promise<unknown>} when it has taken over */
const promoted = replica => until(async () => (await replica.info('replication')).role === 'master')

/** Two gateways on one topology, their listeners and publishers. */
class Traffic {
  /** @param {import('../../../kit/gateway.js').TestGateway[]} gateways */
  constructor(gateways) {
    this.gateways = gateways
  }

  /** @param {any} t ends with this test @param {string} address of Redis */
  static async start(t, address) {
    const options = { redis: { io_timeout: `${IO_TIMEOUT}ms` }, workers: 1 }
    return new Traffic(await Promise.all([startNode(t, address, options), startNode(t, address, options)]))
  }

  /** @param {any} t @param {string} name of the channels @param {boolean} [stays] */
  async listen(t, name, stays) {
    const kept = channels(`kept:${name}`, 12)
    const listeners = this.gateways.flatMap(({ ws }) => [
      new Listener(() => ws, kept, { stays }),
      new SdkListener(() => ws, kept, { stays }),
    ])
    await begin(t, listeners)
    return { kept, listeners }
  }

  /** @param {string[]} channels */
  load(channels) {
    return new Load(() => this.gateways.map(({ url }) => url), channels, { rate: 400 })
  }

  /** @param {string} channel @param {string} id @returns {Promise<any>} its position */
  publish(channel, id) {
    // A publish that times out may still have an effect.
    const call = { channel, data: { id: `${channel} ${id}` }, idempotency_key: id }
    return until(async () => (await this.gateways[0].api('publish', call)).result)
  }
}

/** @param {any} t @param {Topology} topology @param {Traffic} traffic */
async function killedInSync(t, topology, traffic) {
  const { kept, listeners } = await traffic.listen(t, 'synchronous', true)
  for (const channel of kept) for (let i = 0; i < 10; i++) await traffic.publish(channel, `before ${i}`)
  const [master] = await topology.masters()
  const replica = await topology.replicaOf(master)
  const end = await written(master)
  await until(async () => (await written(replica)) >= end)
  await master.kill()
  await promoted(replica)
  const after = traffic.load(kept)
  await after.acked(200)
  await after.stop()
  await audit(t, after, listeners, traffic.gateways[0])
  t.same([...new Set(unrecoveredCounts(listeners))], [0])
  return master
}

const IN_SYNC = 'a master whose replica has everything is killed: clients notice nothing'

/** The least that holds of every failover. @param {any} t @param {Topology} topology */
export async function failover(t, topology) {
  const traffic = await Traffic.start(t, topology.address)
  await t.test(IN_SYNC, t => killedInSync(t, topology, traffic))
}

/** @param {any} t @param {Topology} topology */
export async function failovers(t, topology) {
  const traffic = await Traffic.start(t, topology.address)
  const [a] = traffic.gateways

  const outcome = topology.exact ? 'clients notice nothing' : 'clients get everything, or are notified'
  await t.test(`a master steps down under traffic: ${outcome}`, async t => {
    const { kept, listeners } = await traffic.listen(t, 'planned', topology.exact)
    const load = traffic.load(kept)
    await load.acked(100)
    for (const master of await topology.masters()) {
      await topology.stepDown(master)
      await load.acked(100)
    }
    await load.stop()
    if (topology.exact) {
      await audit(t, load, listeners, a)
      t.same([...new Set(unrecoveredCounts(listeners))], [0])
    } else await lenientAudit(t, load, listeners, a)
    await topology.whole()
  })

  await t.test(IN_SYNC, async t => {
    const master = await killedInSync(t, topology, traffic)
    await master.start()
    await topology.whole()
  })

  await t.test('a master is killed under traffic: clients get everything or are notified', async t => {
    const { kept, listeners } = await traffic.listen(t, 'killed')
    const load = traffic.load(kept)
    await load.acked(200)
    const [master] = await topology.masters()
    const replica = await topology.replicaOf(master)
    await master.kill()
    await promoted(replica)
    await load.acked(200)
    await load.stop()
    await lenientAudit(t, load, listeners, a)
    await master.start()
    await topology.whole()
  })

  await t.test('a frozen master is replaced: clients get everything or are notified', async t => {
    const { kept, listeners } = await traffic.listen(t, 'stopped')
    const load = traffic.load(kept)
    await load.acked(200)
    const [master] = await topology.masters()
    const replica = await topology.replicaOf(master)
    master.stop()
    await promoted(replica)
    await load.acked(200)
    // It still acts as the master until the others correct it.
    master.cont()
    await topology.whole()
    await load.acked(100)
    await load.stop()
    await lenientAudit(t, load, listeners, a)
  })

  // Sentinels may wait for minutes before they accept a replica that cannot reach its master.
  if (topology.losesAtOnce === false) return
  await t.test('clients are notified of lost publications', async t => {
    const { kept, listeners } = await traffic.listen(t, 'lost')
    for (const channel of kept) for (let i = 0; i < 5; i++) await traffic.publish(channel, `before ${i}`)
    const [master] = await topology.masters()
    const replica = await topology.replicaOf(master)
    const end = await written(master)
    await until(async () => (await written(replica)) >= end)
    await replica.call('CONFIG', 'SET', 'masterauth', 'wrong')
    await master.call('CLIENT', 'KILL', 'TYPE', 'replica')
    const positions = new Map()
    for (const channel of kept)
      for (let i = 0; i < 3; i++) positions.set(channel, await traffic.publish(channel, `lost ${i}`))
    const tracks = kept.map(channel => listeners.flatMap(({ tracks }) => tracks.get(channel) ?? []))
    for (const [i, channel] of kept.entries())
      await Promise.all(tracks[i].map(track => track.reaches(positions.get(channel))))
    await master.kill()
    await promoted(replica)
    let lost = 0
    for (const [i, channel] of kept.entries()) {
      const { offset, epoch } = await traffic.publish(channel, 'after')
      const expected = positions.get(channel)
      t.equal(epoch, expected.epoch, 'clients without lost publications recover')
      t.ok(offset > expected.offset, 'no offset is used twice')
      const { publications } = (await a.api('history', { channel, limit: -1 })).result
      const survives = publications.some(publication => publication.offset === expected.offset)
      if (!survives) {
        lost++
        await until(() => tracks[i].every(({ unrecovered }) => unrecovered > 0))
      }
      await traffic.publish(channel, 'last')
      const result = await until(async () => (await a.api('history', { channel, limit: 0 })).result)
      await Promise.all(tracks[i].map(track => track.reaches(result)))
      for (const track of tracks[i]) {
        t.same(track.faults, [])
        t.equal([...track.got.values()].at(-1), `${channel} last`)
        t.equal(track.unrecovered, survives ? 0 : 1)
      }
    }
    t.ok(lost > 0, `${lost} of ${kept.length} channels have lost something`)
    await replica.call('CONFIG', 'SET', 'masterauth', '')
    await master.start()
    await topology.whole()
  })
}
