import t from 'tap'
import { Backend } from './backend.js'
import { conformance } from './conformance.js'
import { httpAdapter } from './http-adapter.js'

await conformance(t, httpAdapter(await Backend.start(t)))
