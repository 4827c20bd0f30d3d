import t from 'tap'
import { SMALL, testGuarantees } from './suite.js'

testGuarantees(t, 'node', SMALL)
