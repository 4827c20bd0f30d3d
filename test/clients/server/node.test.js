import t from 'tap'
import { conformance } from './conformance.js'

conformance(t, 'node')
