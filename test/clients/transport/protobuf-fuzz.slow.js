import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { fuzzProtobuf } from './protobuf-fuzz.js'

t.jobs = 2
for (const driver of /** @type {const} */ (['uws', 'node']))
  t.test(driver, { skip: skipDriver(driver) }, async t => fuzzProtobuf(t, driver, 20_000, 6_000))
