import t from 'tap'
import { fuzzProtobuf } from './protobuf-fuzz.js'

t.test('node', async t => fuzzProtobuf(t, 'node', 150))
