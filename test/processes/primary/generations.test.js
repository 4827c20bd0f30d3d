import t from 'tap'
import { defaultDriver } from '../../kit/drivers.js'
import { testRollingRestart } from './generations-suite.js'

testRollingRestart(t, defaultDriver)
