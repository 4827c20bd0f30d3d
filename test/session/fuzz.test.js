import t from 'tap'
import { fuzzJson } from './fuzz/suite.js'

t.test('uws', async t => fuzzJson(t, 'uws', 150))
