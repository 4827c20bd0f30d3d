import t from 'tap'
import { LARGE, testGuarantees } from './suite.js'

testGuarantees(t, 'node', LARGE)
