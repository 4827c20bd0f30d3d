import t from 'tap'
import { testGuarantees } from './suite.js'

testGuarantees(t, 'node')
