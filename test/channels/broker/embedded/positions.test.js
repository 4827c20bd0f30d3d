// `recovered: true` is always correct, whatever was dropped since the position was issued.

import { join } from 'node:path'
import t from 'tap'
import { Snapshot } from '../../../../src/channels/broker/embedded/snapshot.js'
import { Store } from '../../../../src/channels/broker/embedded/store.js'
import { tempDir } from '../../../kit/folders.js'
import { createTestLog } from './rig.js'

const CHANNELS = 12
const CLIENTS = 8
const LINKS = ['a', 'b', 'c']

/** A gateway across one or many runs, its clients, and all publications so far. */
class Model {
  now = 1_700_000_000_000
  /** @type {Store<string>} */
  store
  /** @type {number[][]} by channel: every accepted publication in its order */
  published = Array.from({ length: CHANNELS }, () => [])
  /** @type {({offset: number, epoch: string, seen: number} | null)[][]} by client and channel: where it stopped */
  positions = Array.from({ length: CLIENTS }, () => Array(CHANNELS).fill(null))
  counts = { recovered: 0, missed: 0, refused: 0, renewed: 0 }
  #random
  #maxBytes
  #last = 0

  constructor(random, maxBytes) {
    this.#random = random
    this.#maxBytes = maxBytes
    this.store = this.create()
  }

  create() {
    return new Store({ maxBytes: this.#maxBytes, clock: () => this.now, onFull() {}, onLeave() {} })
  }

  /** Other channels, to exhaust the memory. */
  noise() {
    const name = `noise${this.#random(1e6)}`
    if (this.#random(2)) this.append(name)
    else {
      this.store.subscribe(name, 'a')
      this.store.stream(name, 60_000)
      this.store.unsubscribe(name, 'a')
    }
  }

  append(name) {
    const body = `${++this.#last}`.padEnd(1 + this.#random(300))
    const [ttl, metaTtl] = [1000 * (1 + this.#random(30)), 1000 * (1 + this.#random(60))]
    const result = this.store.append(name, {
      flags: 0,
      body,
      size: 1 + this.#random(20),
      ttl,
      metaTtl,
      version: 0n,
      versionEpoch: '',
    })
    if (!result.added) throw new Error('no version was given')
    return this.#last
  }

  step() {
    const random = this.#random
    const channel = random(CHANNELS)
    const name = `ch${channel}`
    switch (random(12)) {
      case 0:
      case 1:
      case 2:
        this.published[channel].push(this.append(name))
        return
      case 3:
        return this.store.subscribe(name, LINKS[random(3)])
      case 4:
        return this.store.unsubscribe(name, LINKS[random(3)])
      case 5:
        if (random(30) === 0) {
          this.store.removeLink(LINKS[random(3)])
          while (this.store.removeSome(0));
        } else if (random(5) === 0) this.store.removeHistory(name)
        return
      case 6:
        this.now += random(20) ? random(3000) : random(100_000)
        if (random(2)) this.store.sweep()
        return
      case 7:
        return this.noise()
      default:
        return this.resume(this.positions[random(CLIENTS)], channel)
    }
  }

  /** A client subscribes to a channel, with or without its position. */
  resume(positions, channel) {
    const stream = this.store.stream(`ch${channel}`, 1000 * (1 + this.#random(60)))
    const { top, epoch } = stream
    const all = this.published[channel]
    const position = positions[channel]
    positions[channel] = { offset: top, epoch, seen: all.length }
    if (position === null) return
    const count = stream.missed(position.offset, position.epoch, 0)
    if (count < 0) {
      this.counts.refused++
      if (position.epoch !== epoch) this.counts.renewed++
      return
    }
    const missed = stream.read(position.offset, count, false)
    this.counts.recovered++
    this.counts.missed += missed.length
    const got = missed.map(({ body }) => Number(body)).join()
    const wanted = all.slice(position.seen).join()
    if (got !== wanted)
      throw new Error(`ch${channel} from ${position.epoch} ${position.offset}: ${got}, not ${wanted}`)
  }
}

/** The high bits of a linear congruential generator: the low ones have short periods. */
const generator = seed => n => Math.floor(((seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31) * n)

t.test('recovery is correct within one run, with expiry, eviction and removal', async t => {
  const total = { recovered: 0, missed: 0, refused: 0, renewed: 0 }
  for (let round = 1; round <= 20; round++) {
    const model = new Model(generator(round), [3000, 10_000, 1_000_000][round % 3])
    for (let step = 0; step < 2000; step++) model.step()
    for (const key of Object.keys(total)) total[key] += model.counts[key]
  }
  t.comment(total)
  for (const [key, count] of Object.entries(total)) t.ok(count > 500, `${count} ${key}`)
})

t.test('recovery is correct across restarts and crashes with a snapshot', async t => {
  const folder = tempDir(t)
  const total = { recovered: 0, missed: 0, refused: 0, renewed: 0 }
  for (let round = 1; round <= 4; round++) {
    const random = generator(100 + round)
    const maxBytes = [3000, 20_000, 1_000_000][round % 3]
    const model = new Model(random, maxBytes)
    const file = join(folder, `snapshot${round}`)
    for (let life = 0; life < 5; life++) {
      const snapshot = new Snapshot(file, maxBytes, /** @type {any} */ (createTestLog()))
      model.store = (await snapshot.take(() => model.create())) ?? model.create()
      for (let step = 0; step < 500; step++) model.step()
      if (random(4) === 0) continue
      for (const link of LINKS) model.store.removeLink(link)
      model.store.removeSome(Infinity)
      await snapshot.write(model.store)
    }
    for (const key of Object.keys(total)) total[key] += model.counts[key]
  }
  t.comment(total)
  for (const [key, count] of Object.entries(total)) t.ok(count > 100, `${count} ${key}`)
})
