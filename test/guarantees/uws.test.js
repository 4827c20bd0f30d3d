import t from 'tap'
import { skipDriver } from '../kit/drivers.js'
import { skipFile } from '../kit/needs.js'
import { SMALL, testGuarantees } from './suite.js'

skipFile(t, skipDriver('uws'))

testGuarantees(t, 'uws', SMALL)
