import t from 'tap'
import { brokerConformance } from './conformance.js'
import { startEmbedded } from './embedded/rig.js'

t.test('embedded broker', async t => brokerConformance(t, startEmbedded))
