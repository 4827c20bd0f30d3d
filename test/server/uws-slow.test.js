import t from 'tap'
import { slowConformance } from './conformance.js'

slowConformance(t, 'uws')
