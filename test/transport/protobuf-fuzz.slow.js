import t from 'tap'
import { drivers } from '../session/support.js'
import { fuzzProtobuf } from './protobuf-fuzz.js'

t.jobs = 2
for (const driver of drivers) t.test(driver, async t => fuzzProtobuf(t, driver, 20_000, 15_000))
