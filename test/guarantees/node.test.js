import t from 'tap'
import { SHORT, testGuarantees } from './suite.js'

testGuarantees(t, 'node', SHORT)
