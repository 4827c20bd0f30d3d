// A process of the load generator: a drone's engine, which also knows how to talk to bare libraries, and Protobuf.

import { beEngine } from '../fleet/drone/child.js'
import { BareConnection, ProtobufConnection } from './connections.js'

beEngine(process, { transports: { uni_bare: BareConnection, protobuf: ProtobufConnection } })
