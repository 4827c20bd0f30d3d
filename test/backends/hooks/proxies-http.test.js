import t from 'tap'
import { httpAdapter } from './adapters.js'
import { Backend } from './backend.js'
import { conformance } from './conformance.js'

await conformance(t, httpAdapter(await Backend.start(t)))
