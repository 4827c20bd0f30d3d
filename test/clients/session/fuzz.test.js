import t from 'tap'
import { defaultDriver } from '../../kit/drivers.js'
import { fuzzJson } from './fuzz/suite.js'

t.test(defaultDriver, async t => fuzzJson(t, defaultDriver, 150))
