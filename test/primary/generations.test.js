import t from 'tap'
import { generationsSuite } from './generations-suite.js'

generationsSuite(t, 'uws')
