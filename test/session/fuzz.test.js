import t from 'tap'
import { defaultDriver } from '../drivers.js'
import { fuzzJson } from './fuzz/suite.js'

t.test(defaultDriver, async t => fuzzJson(t, defaultDriver, 150))
