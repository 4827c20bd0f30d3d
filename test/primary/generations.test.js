import t from 'tap'
import { testRollingRestart } from './generations-suite.js'

testRollingRestart(t, 'uws')
