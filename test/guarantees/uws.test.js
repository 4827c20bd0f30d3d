import t from 'tap'
import { SHORT, testGuarantees } from './suite.js'

testGuarantees(t, 'uws', SHORT)
