import t from 'tap'
import { skipDriver } from '../drivers.js'
import { skipFile } from '../needs.js'
import { LARGE, testGuarantees } from './suite.js'

skipFile(t, skipDriver('uws'))

testGuarantees(t, 'uws', LARGE)
