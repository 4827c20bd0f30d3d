import t from 'tap'
import { pollSuite } from './suite.js'

pollSuite(t, 'uws')
