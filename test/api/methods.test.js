import t from 'tap'
import { clientOf, embed, methodsSuite } from './methods-suite.js'

const gateway = await embed(t)
t.test('gateway object', async t => methodsSuite(t, gateway, gateway, 'own'))
t.test('HTTP client', async t => methodsSuite(t, gateway, clientOf(t, gateway), 'http'))
