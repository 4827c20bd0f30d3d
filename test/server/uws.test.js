import t from 'tap'
import { skipDriver } from '../drivers.js'
import { skipFile } from '../needs.js'
import { conformance } from './conformance.js'

skipFile(t, skipDriver('uws'))

conformance(t, 'uws')
